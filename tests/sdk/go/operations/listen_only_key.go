// A policy with the right to listen receives, and may not send.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("listen_only_key", func(p *place.Place) {
	p.Send(p.Queue, place.Texts("for whoever listens")...)
	client := p.ClientOf(p.ConnectionListen)
	receiver := place.Must(client.NewReceiverForQueue(p.Queue, nil))
	p.Complete(receiver, p.ReceiveOne(receiver))
	sender := place.Must(client.NewSender(p.Queue, nil))
	place.Refused(sender.SendMessage(p.Context, &azservicebus.Message{}, nil), azservicebus.CodeUnauthorizedAccess)
})

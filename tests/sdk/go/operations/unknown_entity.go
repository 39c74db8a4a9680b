// A queue that does not exist is named as such, to senders and to receivers.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("unknown_entity", func(p *place.Place) {
	err := p.Sender(p.Missing).SendMessage(p.Context, &azservicebus.Message{Body: []byte("nowhere")}, nil)
	place.RefusedAs(err, "amqp:not-found")
	_, err = p.Receiver(p.Missing).ReceiveMessages(p.Context, 1, nil)
	place.RefusedAs(err, "amqp:not-found")
})

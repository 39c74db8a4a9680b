// In this mode a message is gone once it was received.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("receive_and_delete", func(p *place.Place) {
	const count = 5
	sender := p.Sender(p.Queue)
	batch := p.Batch(sender, place.Texts(place.Numbered(count)...)...)
	place.Check(sender.SendMessageBatch(p.Context, batch, nil))
	options := &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
	receiver := place.Must(p.Client().NewReceiverForQueue(p.Queue, options))
	place.SameTexts(place.Sorted(place.Bodies(p.Receive(receiver, count))), place.Numbered(count))
	p.IsEmpty(receiver)
})

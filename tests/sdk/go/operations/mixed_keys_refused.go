// A batch whose messages have different keys is refused whole.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("mixed_keys_refused", func(p *place.Place) {
	sender := p.Sender(p.Queue)
	batch := p.Batch(
		sender,
		&azservicebus.Message{PartitionKey: place.To("one")},
		&azservicebus.Message{PartitionKey: place.To("another")},
	)
	place.Refused(sender.SendMessageBatch(p.Context, batch, nil))
	p.IsEmpty(p.Receiver(p.Queue))
})

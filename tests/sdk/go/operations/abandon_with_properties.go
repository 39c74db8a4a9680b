// An abandoned message may be given changed properties.

package operations

import (
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("abandon_with_properties", func(p *place.Place) {
	properties := map[string]any{"kept": "yes", "tries": int64(0)}
	p.Send(p.Queue, &azservicebus.Message{ApplicationProperties: properties})
	receiver := p.Receiver(p.Queue)
	changes := map[string]any{"tries": int64(1), "added": "now"}
	options := &azservicebus.AbandonMessageOptions{PropertiesToModify: changes}
	place.Check(receiver.AbandonMessage(p.Context, p.ReceiveOne(receiver), options))
	message := p.ReceiveOne(receiver)
	p.Complete(receiver, message)
	wanted := map[string]any{"kept": "yes", "tries": int64(1), "added": "now"}
	place.True(maps.Equal(message.ApplicationProperties, wanted), "%v", message.ApplicationProperties)
})

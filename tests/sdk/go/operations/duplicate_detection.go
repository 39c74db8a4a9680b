// A second message with the id of the first is accepted and dropped; each partition key has its own ids.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("duplicate_detection", func(p *place.Place) {
	id := place.Own("id")
	for _, key := range []string{"", "", "one", "one", "another"} {
		message := &azservicebus.Message{Body: []byte(key), MessageID: &id}
		if key != "" {
			message.PartitionKey = &key
		}
		p.Send(p.Brief, message)
	}
	wanted := []string{"", "another", "one"}
	receiver := p.Receiver(p.Brief)
	messages := p.Receive(receiver, len(wanted))
	p.Complete(receiver, messages...)
	p.NothingComes(receiver, time.Second)
	place.SameTexts(place.Sorted(place.Bodies(messages)), wanted)
})

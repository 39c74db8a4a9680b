// Messages with one key keep their order, in one partition, and show their key.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("send_partition_key", func(p *place.Place) {
	const count = 10
	key := place.Own("key")
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	for _, body := range place.Numbered(count) {
		message := &azservicebus.Message{Body: []byte(body), PartitionKey: &key}
		place.Check(sender.SendMessage(p.Context, message, nil))
	}
	messages := p.Receive(receiver, count)
	p.Complete(receiver, messages...)
	place.SameTexts(place.Bodies(messages), place.Numbered(count))
	for _, message := range messages {
		place.Equal(*message.PartitionKey, key, "partition key")
		place.Equal(*message.SequenceNumber>>48, *messages[0].SequenceNumber>>48, "partition")
	}
})

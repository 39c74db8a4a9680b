// A list of messages is sent at once, and all arrive.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("send_list", func(p *place.Place) {
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	var messages []*azservicebus.Message
	var ids, found []string
	for range 10 {
		id := place.Own("id")
		ids = append(ids, id)
		messages = append(messages, &azservicebus.Message{Body: []byte("listed"), MessageID: &id})
	}
	place.Check(sender.SendMessageBatch(p.Context, p.Batch(sender, messages...), nil))
	for _, message := range p.Receive(receiver, len(ids)) {
		found = append(found, message.MessageID)
		p.Complete(receiver, message)
	}
	place.SameTexts(place.Sorted(found), place.Sorted(ids))
})

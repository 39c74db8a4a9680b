// A peek shows messages and neither locks nor removes them.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("peek", func(p *place.Place) {
	const count = 3
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	batch := p.Batch(sender, place.Texts(place.Numbered(count)...)...)
	place.Check(sender.SendMessageBatch(p.Context, batch, nil))
	for range 2 {
		place.SameTexts(place.Bodies(p.PeekFrom(receiver, 10, 1)), place.Numbered(count))
	}
	for _, message := range p.Receive(receiver, count) {
		place.Equal(message.DeliveryCount, 1, "delivery count")
		p.Complete(receiver, message)
	}
	p.IsEmpty(receiver)
})

// A peek begins at a sequence number, and goes on where the last one ended.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("peek_from_sequence_number", func(p *place.Place) {
	const count = 6
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	batch := p.Batch(sender, place.Texts(place.Numbered(count)...)...)
	place.Check(sender.SendMessageBatch(p.Context, batch, nil))
	all := place.Must(receiver.PeekMessages(p.Context, count, nil))
	place.Equal(len(all), count, "messages peeked")
	for start := range all {
		peeked := p.PeekFrom(receiver, 2, *all[start].SequenceNumber)
		place.SameTexts(place.Bodies(peeked), place.Bodies(all[start:min(start+2, count)]))
	}
	p.Complete(receiver, p.Receive(receiver, count)...)
})

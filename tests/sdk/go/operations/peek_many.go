// A peek over all partitions gives as many as were asked for, in the order of their sequence numbers.

package operations

import (
	"slices"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("peek_many", func(p *place.Place) {
	wanted := place.Numbered(120)
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	for list := range slices.Chunk(wanted, 3) {
		place.Check(sender.SendMessageBatch(p.Context, p.Batch(sender, place.Texts(list...)...), nil))
	}
	peeked := p.PeekFrom(receiver, 100, 1)
	place.Equal(len(peeked), 100, "messages peeked")
	peeked = append(peeked, p.PeekFrom(receiver, 100, *peeked[99].SequenceNumber+1)...)
	for index := range peeked[1:] {
		place.True(*peeked[index].SequenceNumber < *peeked[index+1].SequenceNumber, "out of order at %d", index)
	}
	place.SameTexts(place.Sorted(place.Bodies(peeked)), wanted)
	p.Complete(receiver, p.Receive(receiver, len(wanted))...)
})

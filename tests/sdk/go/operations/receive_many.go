// Three hundred messages in all partitions come, each once, in receives of up to fifty.

package operations

import (
	"slices"
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("receive_many", func(p *place.Place) {
	wanted := place.Numbered(300)
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	for list := range slices.Chunk(wanted, 10) {
		place.Check(sender.SendMessageBatch(p.Context, p.Batch(sender, place.Texts(list...)...), nil))
	}
	var found []string
	for len(found) < len(wanted) {
		messages := place.Must(receiver.ReceiveMessages(p.Context, 50, nil))
		found = append(found, place.Bodies(messages)...)
		p.Complete(receiver, messages...)
	}
	p.NothingComes(receiver, time.Second)
	place.SameTexts(place.Sorted(found), wanted)
})

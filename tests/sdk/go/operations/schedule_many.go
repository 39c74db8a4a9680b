// Several messages are scheduled at once; each has a sequence number.

package operations

import (
	"slices"
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("schedule_many", func(p *place.Place) {
	const count = 5
	at := time.Now().Add(2 * time.Second)
	messages := place.Texts(place.Numbered(count)...)
	numbers := place.Must(p.Sender(p.Queue).ScheduleMessages(p.Context, messages, at, nil))
	slices.Sort(numbers)
	place.Equal(len(slices.Compact(numbers)), count, "sequence numbers")
	receiver := p.Receiver(p.Queue)
	got := p.Receive(receiver, count)
	p.Complete(receiver, got...)
	place.SameTexts(place.Sorted(place.Bodies(got)), place.Numbered(count))
})

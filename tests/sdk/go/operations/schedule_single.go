// A scheduled message comes at its time, not before.

package operations

import (
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("schedule_single", func(p *place.Place) {
	body := place.Own("scheduled")
	at := time.Now().Add(3 * time.Second)
	numbers := place.Must(p.Sender(p.Queue).ScheduleMessages(p.Context, place.Texts(body), at, nil))
	place.True(len(numbers) == 1 && numbers[0] > 0, "%v", numbers)
	receiver := p.Receiver(p.Queue)
	p.NothingComes(receiver, time.Second)
	message := p.ReceiveOne(receiver)
	place.True(time.Since(at) > -100*time.Millisecond, "%v before its time", time.Until(at))
	place.Equal(string(message.Body), body, "body")
	place.True(!message.EnqueuedTime.Before(*message.ScheduledEnqueueTime), "enqueued at %v", message.EnqueuedTime)
	p.Complete(receiver, message)
})

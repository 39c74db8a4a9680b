// A message that is sent with a time to be enqueued comes at that time.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("schedule_by_property", func(p *place.Place) {
	at := time.Now().Add(3 * time.Second)
	p.Send(p.Queue, &azservicebus.Message{Body: []byte("later"), ScheduledEnqueueTime: &at})
	receiver := p.Receiver(p.Queue)
	p.NothingComes(receiver, time.Second)
	message := p.ReceiveOne(receiver)
	place.True(time.Since(at) > -100*time.Millisecond, "%v before its time", time.Until(at))
	p.Complete(receiver, message)
})

// A scheduled message that is cancelled never comes; cancelling what is not scheduled is told.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("cancel_scheduled", func(p *place.Place) {
	at := time.Now().Add(2 * time.Second)
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	numbers := place.Must(sender.ScheduleMessages(p.Context, place.Texts("never", "nor this"), at, nil))
	place.Check(sender.CancelScheduledMessages(p.Context, numbers, nil))
	place.Refused(sender.CancelScheduledMessages(p.Context, numbers, nil), azservicebus.CodeNotFound)
	p.IsEmpty(receiver)
	p.NothingComes(receiver, 3*time.Second)
})

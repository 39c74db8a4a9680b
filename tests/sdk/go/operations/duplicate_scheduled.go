// A scheduled message counts when duplicates are looked for.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("duplicate_scheduled", func(p *place.Place) {
	id := place.Own("id")
	scheduled := []*azservicebus.Message{{Body: []byte("scheduled"), MessageID: &id}}
	place.Must(p.Sender(p.Brief).ScheduleMessages(p.Context, scheduled, time.Now().Add(time.Second), nil))
	p.Send(p.Brief, &azservicebus.Message{Body: []byte("sent"), MessageID: &id})
	receiver := p.Receiver(p.Brief)
	message := p.ReceiveOne(receiver)
	place.Equal(string(message.Body), "scheduled", "body")
	p.Complete(receiver, message)
	p.NothingComes(receiver, time.Second)
})

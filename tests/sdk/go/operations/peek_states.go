// A peek shows whether a message is active, deferred or scheduled.

package operations

import (
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("peek_states", func(p *place.Place) {
	key := place.To("one")
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	message := func(body string) *azservicebus.Message {
		return &azservicebus.Message{Body: []byte(body), PartitionKey: key}
	}
	p.Send(p.Queue, message("deferred"))
	deferred := p.ReceiveOne(receiver)
	place.Check(receiver.DeferMessage(p.Context, deferred, nil))
	p.Send(p.Queue, message("active"))
	later := time.Now().Add(10 * time.Minute)
	scheduled := []*azservicebus.Message{message("scheduled")}
	numbers := place.Must(sender.ScheduleMessages(p.Context, scheduled, later, nil))
	states := map[string]azservicebus.MessageState{}
	for _, each := range p.PeekFrom(receiver, 10, 1) {
		states[string(each.Body)] = each.State
	}
	wanted := map[string]azservicebus.MessageState{
		"deferred":  azservicebus.MessageStateDeferred,
		"active":    azservicebus.MessageStateActive,
		"scheduled": azservicebus.MessageStateScheduled,
	}
	place.True(maps.Equal(states, wanted), "%v", states)
	place.Check(sender.CancelScheduledMessages(p.Context, numbers, nil))
	back := place.Must(receiver.ReceiveDeferredMessages(p.Context, []int64{*deferred.SequenceNumber}, nil))
	p.Complete(receiver, append(back, p.ReceiveOne(receiver))...)
})

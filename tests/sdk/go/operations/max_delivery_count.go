// After as many deliveries as the queue allows, three here, a message is dead-lettered.

package operations

import (
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("max_delivery_count", func(p *place.Place) {
	p.Send(p.Queue, place.Texts("never right")...)
	receiver := p.Receiver(p.Queue)
	for count := range uint32(3) {
		message := p.ReceiveOne(receiver)
		place.Equal(message.DeliveryCount, count+1, "delivery count")
		place.Check(receiver.AbandonMessage(p.Context, message, nil))
	}
	p.NothingComes(receiver, time.Second)
	deadLetters := p.DeadLetters(p.Queue)
	dead := p.ReceiveOne(deadLetters)
	place.Equal(*dead.DeadLetterReason, "MaxDeliveryCountExceeded", "reason")
	p.Complete(deadLetters, dead)
})

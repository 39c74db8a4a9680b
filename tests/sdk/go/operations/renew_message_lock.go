// A renewed lock holds longer, again and again, beyond the queue's lock duration.

package operations

import (
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("renew_message_lock", func(p *place.Place) {
	const lock = 5 * time.Second
	p.Send(p.Brief, place.Texts("held")...)
	receiver := p.Receiver(p.Brief)
	message := p.ReceiveOne(receiver)
	for began := time.Now(); time.Since(began) < lock+1500*time.Millisecond; time.Sleep(time.Second) {
		place.Check(receiver.RenewMessageLock(p.Context, message, nil))
		place.True(time.Until(*message.LockedUntil) > lock-2*time.Second, "locked until %v", message.LockedUntil)
	}
	p.Complete(receiver, message)
	p.IsEmpty(receiver)
})

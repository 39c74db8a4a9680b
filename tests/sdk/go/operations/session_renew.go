// A session's lock is renewed as a whole, beyond the queue's lock duration.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_renew", func(p *place.Place) {
	const lock = 10 * time.Second
	id := place.Own("session")
	p.Send(p.Sessions, &azservicebus.Message{Body: []byte("held"), SessionID: &id})
	receiver := p.Session(id)
	place.True(receiver.LockedUntil().After(time.Now()), "locked until %v", receiver.LockedUntil())
	message := p.ReceiveOne(receiver)
	for range 3 {
		time.Sleep(lock * 4 / 10)
		place.Check(receiver.RenewSessionLock(p.Context, nil))
		place.True(time.Until(receiver.LockedUntil()) > lock/2, "locked until %v", receiver.LockedUntil())
	}
	p.Complete(receiver, message)
})

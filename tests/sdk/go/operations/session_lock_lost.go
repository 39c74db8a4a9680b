// Whoever goes on after a session's lock has run out is told that it was lost, and its message comes again, counted.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_lock_lost", func(p *place.Place) {
	const lock = 10 * time.Second
	id := place.Own("session")
	p.Send(p.Sessions, &azservicebus.Message{Body: []byte("held too long"), SessionID: &id})
	holder := p.Session(id)
	held := p.ReceiveOne(holder)
	time.Sleep(lock + time.Second)
	place.Refused(holder.RenewSessionLock(p.Context, nil), azservicebus.CodeLockLost)
	place.Refused(holder.CompleteMessage(p.Context, held, nil))
	place.Check(holder.Close(p.Context))
	receiver := p.Session(id)
	message := p.ReceiveOne(receiver)
	place.Equal(message.DeliveryCount, 2, "delivery count")
	p.Complete(receiver, message)
})

// Whoever settles after the lock has run out is told that it was lost.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("settle_after_expiry", func(p *place.Place) {
	p.Send(p.Brief, place.Texts("too late")...)
	receiver := p.Receiver(p.Brief)
	message := p.ReceiveOne(receiver)
	time.Sleep(6 * time.Second)
	place.Refused(receiver.CompleteMessage(p.Context, message, nil), azservicebus.CodeLockLost)
	place.Refused(receiver.RenewMessageLock(p.Context, message, nil), azservicebus.CodeLockLost)
	p.Complete(receiver, p.ReceiveOne(receiver))
})

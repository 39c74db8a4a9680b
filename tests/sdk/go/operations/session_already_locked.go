// A session that another receiver holds cannot be accepted, and can be once that one has closed.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_already_locked", func(p *place.Place) {
	id := place.Own("session")
	p.Send(p.Sessions, &azservicebus.Message{Body: []byte("held"), SessionID: &id})
	holder := p.Session(id)
	_, err := p.Client().AcceptSessionForQueue(p.Context, p.Sessions, id, nil)
	place.RefusedAs(err, "session-cannot-be-locked")
	place.Check(holder.Close(p.Context))
	receiver := p.Session(id)
	message := p.ReceiveOne(receiver)
	place.Equal(message.DeliveryCount, 1, "delivery count")
	p.Complete(receiver, message)
})

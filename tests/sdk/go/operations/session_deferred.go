// Within a session a message is deferred, received by its number and completed.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_deferred", func(p *place.Place) {
	id := place.Own("session")
	p.Send(p.Sessions, &azservicebus.Message{Body: []byte("later"), SessionID: &id})
	receiver := p.Session(id)
	message := p.ReceiveOne(receiver)
	place.Check(receiver.DeferMessage(p.Context, message, nil))
	p.NothingComes(receiver, time.Second)
	numbers := []int64{*message.SequenceNumber}
	deferred := place.Must(receiver.ReceiveDeferredMessages(p.Context, numbers, nil))
	place.SameTexts(place.Bodies(deferred), []string{"later"})
	place.Equal(*deferred[0].SessionID, id, "session id")
	p.Complete(receiver, deferred...)
	p.IsEmpty(receiver)
})

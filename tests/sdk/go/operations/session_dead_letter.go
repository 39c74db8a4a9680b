// The dead-letter queue of a queue with sessions is read without sessions.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_dead_letter", func(p *place.Place) {
	id := place.Own("session")
	p.Send(p.Sessions, &azservicebus.Message{Body: []byte("unwanted"), SessionID: &id})
	receiver := p.Session(id)
	why := &azservicebus.DeadLetterOptions{Reason: place.To("why")}
	place.Check(receiver.DeadLetterMessage(p.Context, p.ReceiveOne(receiver), why))
	place.Check(receiver.Close(p.Context))
	deadLetters := p.DeadLetters(p.Sessions)
	dead := p.ReceiveOne(deadLetters)
	place.Equal(string(dead.Body), "unwanted", "body")
	place.Equal(*dead.SessionID, id, "session id")
	place.Equal(*dead.DeadLetterReason, "why", "reason")
	p.Complete(deadLetters, dead)
})

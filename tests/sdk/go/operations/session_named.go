// A session that is accepted by name gives its own messages only.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_named", func(p *place.Place) {
	ids := []string{place.Own("session"), place.Own("session")}
	for _, id := range ids {
		p.Send(p.Sessions, &azservicebus.Message{Body: []byte(id), SessionID: &id})
	}
	for _, id := range ids {
		receiver := p.Session(id)
		place.Equal(receiver.SessionID(), id, "session id")
		message := p.ReceiveOne(receiver)
		place.Equal(string(message.Body), id, "body")
		place.Equal(*message.SessionID, id, "session id")
		p.Complete(receiver, message)
		p.NothingComes(receiver, time.Second)
		place.Check(receiver.Close(p.Context))
	}
})

// The next session that has messages is accepted without a name, each once.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_next", func(p *place.Place) {
	var wanted, found []string
	for range 3 {
		id := place.Own("session")
		wanted = append(wanted, id)
		p.Send(p.Sessions, &azservicebus.Message{Body: []byte(id), SessionID: &id})
	}
	for range wanted {
		receiver := place.Must(p.Client().AcceptNextSessionForQueue(p.Context, p.Sessions, nil))
		message := p.ReceiveOne(receiver)
		place.Equal(*message.SessionID, receiver.SessionID(), "session id")
		p.Complete(receiver, message)
		found = append(found, receiver.SessionID())
	}
	place.SameTexts(place.Sorted(found), place.Sorted(wanted))
})

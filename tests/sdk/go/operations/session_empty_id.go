// The empty text is a session's id like any other.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_empty_id", func(p *place.Place) {
	p.Send(p.Sessions, &azservicebus.Message{Body: []byte("empty"), SessionID: place.To("")})
	receiver := p.Session("")
	place.Equal(receiver.SessionID(), "", "session id")
	message := p.ReceiveOne(receiver)
	place.Equal(string(message.Body), "empty", "body")
	place.Equal(*message.SessionID, "", "session id")
	place.Check(receiver.SetSessionState(p.Context, []byte("its own"), nil))
	place.Equal(string(place.Must(receiver.GetSessionState(p.Context, nil))), "its own", "state")
	place.Check(receiver.SetSessionState(p.Context, nil, nil))
	p.Complete(receiver, message)
})

// A peek by the receiver of a session shows that session's messages only.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_peek", func(p *place.Place) {
	const count = 3
	ids := []string{place.Own("session"), place.Own("session")}
	for _, body := range place.Numbered(count) {
		for _, id := range ids {
			p.Send(p.Sessions, &azservicebus.Message{Body: []byte(body), SessionID: &id})
		}
	}
	for _, id := range ids {
		receiver := p.Session(id)
		peeked := p.PeekFrom(receiver, 10, 1)
		place.SameTexts(place.Bodies(peeked), place.Numbered(count))
		for _, message := range peeked {
			place.Equal(*message.SessionID, id, "session id")
		}
		p.Complete(receiver, p.Receive(receiver, count)...)
		place.Check(receiver.Close(p.Context))
	}
})

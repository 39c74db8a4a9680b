// A session's messages come in the order in which they were sent, also after one was abandoned.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_order", func(p *place.Place) {
	wanted := place.Numbered(10)
	id := place.Own("session")
	for _, body := range wanted {
		p.Send(p.Sessions, &azservicebus.Message{Body: []byte(body), SessionID: &id})
	}
	receiver := p.Session(id)
	place.Check(receiver.AbandonMessage(p.Context, p.ReceiveOne(receiver), nil))
	var found []string
	for range wanted {
		message := p.ReceiveOne(receiver)
		found = append(found, string(message.Body))
		p.Complete(receiver, message)
	}
	place.SameTexts(found, wanted)
})

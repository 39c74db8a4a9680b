// A dead-lettered message is in the dead-letter queue, with reason, description and source.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("dead_letter", func(p *place.Place) {
	body := place.Own("unwanted")
	message := &azservicebus.Message{Body: []byte(body), ApplicationProperties: map[string]any{"kept": "yes"}}
	p.Send(p.Queue, message)
	receiver := p.Receiver(p.Queue)
	why := &azservicebus.DeadLetterOptions{
		Reason:             place.To("the reason"),
		ErrorDescription:   place.To("the words"),
		PropertiesToModify: map[string]any{"added": int64(1)},
	}
	place.Check(receiver.DeadLetterMessage(p.Context, p.ReceiveOne(receiver), why))
	p.NothingComes(receiver, time.Second)
	deadLetters := p.DeadLetters(p.Queue)
	dead := p.ReceiveOne(deadLetters)
	place.Equal(string(dead.Body), body, "body")
	place.Equal(*dead.DeadLetterReason, "the reason", "reason")
	place.Equal(*dead.DeadLetterErrorDescription, "the words", "description")
	place.Equal(dead.ApplicationProperties["kept"], any("yes"), "property kept")
	place.Equal(dead.ApplicationProperties["added"], any(int64(1)), "property added")
	p.Complete(deadLetters, dead)
	p.IsEmpty(deadLetters)
})

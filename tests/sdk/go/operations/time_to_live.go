// A message that nobody took in time is in the dead-letter queue, where its queue says so.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("time_to_live", func(p *place.Place) {
	body := place.Own("short")
	p.Send(p.Queue, &azservicebus.Message{Body: []byte(body), TimeToLive: place.To(time.Second)})
	deadLetters := p.DeadLetters(p.Queue)
	dead := p.ReceiveOne(deadLetters)
	place.Equal(string(dead.Body), body, "body")
	place.Equal(*dead.DeadLetterReason, "TTLExpiredException", "reason")
	p.Complete(deadLetters, dead)
	p.NothingComes(p.Receiver(p.Queue), time.Second)
})

// A receive that waits is woken by a message that comes.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("receive_waiting", func(p *place.Place) {
	receiver, sender := p.Receiver(p.Queue), p.Sender(p.Queue)
	sent := make(chan time.Time, 1)
	go func() {
		time.Sleep(1500 * time.Millisecond)
		if err := sender.SendMessage(p.Context, &azservicebus.Message{Body: []byte("wake up")}, nil); err == nil {
			sent <- time.Now()
		}
	}()
	message := p.ReceiveOne(receiver)
	came := time.Now()
	after := came.Sub(<-sent)
	place.True(after < 3*time.Second, "it came %v after it was sent", after)
	p.Complete(receiver, message)
})

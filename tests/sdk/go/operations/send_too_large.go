// A message above the limit is refused, and the sender goes on.

package operations

import (
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("send_too_large", func(p *place.Place) {
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	err := sender.SendMessage(p.Context, &azservicebus.Message{Body: make([]byte, 2_000_000)}, nil)
	place.True(errors.Is(err, azservicebus.ErrMessageTooLarge), "%v", err)
	place.Check(sender.SendMessage(p.Context, &azservicebus.Message{Body: []byte("small")}, nil))
	message := p.ReceiveOne(receiver)
	place.Equal(string(message.Body), "small", "body")
	p.Complete(receiver, message)
	p.NothingComes(receiver, time.Second)
})

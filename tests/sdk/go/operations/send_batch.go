// The SDK's batch takes messages until it is full, is sent, and all of them arrive.

package operations

import (
	"bytes"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("send_batch", func(p *place.Place) {
	body := bytes.Repeat([]byte("x"), 10_000)
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	batch := place.Must(sender.NewMessageBatch(p.Context, nil))
	count := int(batch.NumMessages())
	for count < 1000 {
		err := batch.AddMessage(&azservicebus.Message{Body: body}, nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			break
		}
		place.Check(err)
		count++
	}
	place.True(20 <= count && count < 1000, "a batch takes %d messages of 10 KB", count)
	place.Check(sender.SendMessageBatch(p.Context, batch, nil))
	for _, message := range p.Receive(receiver, count) {
		place.True(bytes.Equal(message.Body, body), "another body")
		p.Complete(receiver, message)
	}
})

// A deferred message that was received can be abandoned (and stays deferred), renewed, dead-lettered and completed.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("deferred_settled", func(p *place.Place) {
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	place.Check(sender.SendMessageBatch(p.Context, p.Batch(sender, place.Texts("first", "second")...), nil))
	var numbers []int64
	for _, message := range p.Receive(receiver, 2) {
		place.Check(receiver.DeferMessage(p.Context, message, nil))
		numbers = append(numbers, *message.SequenceNumber)
	}
	deferred := place.Must(receiver.ReceiveDeferredMessages(p.Context, numbers, nil))
	place.Equal(len(deferred), 2, "deferred messages")
	place.Check(receiver.AbandonMessage(p.Context, deferred[0], nil))
	place.Check(receiver.RenewMessageLock(p.Context, deferred[1], nil))
	why := &azservicebus.DeadLetterOptions{Reason: place.To("deferred"), ErrorDescription: place.To("and not wanted")}
	place.Check(receiver.DeadLetterMessage(p.Context, deferred[1], why))
	again := place.Must(receiver.ReceiveDeferredMessages(p.Context, []int64{*deferred[0].SequenceNumber}, nil))
	p.Complete(receiver, again...)
	deadLetters := p.DeadLetters(p.Queue)
	dead := p.ReceiveOne(deadLetters)
	p.Complete(deadLetters, dead)
	place.Equal(string(dead.Body), string(deferred[1].Body), "body")
	place.Equal(*dead.DeadLetterReason, "deferred", "reason")
})

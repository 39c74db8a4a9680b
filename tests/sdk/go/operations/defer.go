// A deferred message is received by its sequence number only.

package operations

import (
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("defer", func(p *place.Place) {
	body := place.Own("later")
	p.Send(p.Queue, place.Texts(body)...)
	receiver := p.Receiver(p.Queue)
	message := p.ReceiveOne(receiver)
	place.Check(receiver.DeferMessage(p.Context, message, nil))
	p.NothingComes(receiver, time.Second)
	numbers := []int64{*message.SequenceNumber}
	deferred := place.Must(receiver.ReceiveDeferredMessages(p.Context, numbers, nil))
	place.SameTexts(place.Bodies(deferred), []string{body})
	p.Complete(receiver, deferred...)
	p.IsEmpty(receiver)
})

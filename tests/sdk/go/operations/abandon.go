// An abandoned message comes again at once, with one delivery more.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("abandon", func(p *place.Place) {
	p.Send(p.Queue, place.Texts("again")...)
	receiver := p.Receiver(p.Queue)
	first := p.ReceiveOne(receiver)
	place.Check(receiver.AbandonMessage(p.Context, first, nil))
	second := p.ReceiveOne(receiver)
	place.Equal(first.DeliveryCount, 1, "first delivery count")
	place.Equal(second.DeliveryCount, 2, "second delivery count")
	place.Equal(*second.SequenceNumber, *first.SequenceNumber, "sequence number")
	p.Complete(receiver, second)
})

// A message whose lock runs out comes again, with one delivery more.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("lock_expiry", func(p *place.Place) {
	p.Send(p.Brief, place.Texts("again")...)
	first := p.ReceiveOne(p.Receiver(p.Brief))
	receiver := p.Receiver(p.Brief)
	second := p.ReceiveOne(receiver)
	place.Equal(first.DeliveryCount, 1, "first delivery count")
	place.Equal(second.DeliveryCount, 2, "second delivery count")
	place.Equal(*second.SequenceNumber, *first.SequenceNumber, "sequence number")
	p.Complete(receiver, second)
})

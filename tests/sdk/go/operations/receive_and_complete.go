// A message that was completed does not come again.

package operations

import (
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("receive_and_complete", func(p *place.Place) {
	p.Send(p.Queue, place.Texts("once")...)
	first := p.Receiver(p.Queue)
	p.Complete(first, p.ReceiveOne(first))
	place.Check(first.Close(p.Context))
	second := p.Receiver(p.Queue)
	p.NothingComes(second, time.Second)
	p.IsEmpty(second)
})

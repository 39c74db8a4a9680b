// A receive from an empty queue ends with nothing when its time is over, not before and not much later.

package operations

import (
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("receive_nothing", func(p *place.Place) {
	began := time.Now()
	p.NothingComes(p.Receiver(p.Queue), 2*time.Second)
	took := time.Since(began)
	place.True(1500*time.Millisecond < took && took < 6*time.Second, "it took %v", took)
})

// A sequence number that is no deferred message's is told so.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("deferred_unknown", func(p *place.Place) {
	_, err := p.Receiver(p.Queue).ReceiveDeferredMessages(p.Context, []int64{1_000_000}, nil)
	place.Refused(err, azservicebus.CodeNotFound)
})

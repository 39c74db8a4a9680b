// A queue with sessions refuses a receiver without one.

package operations

import (
	"strings"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_receiver_required", func(p *place.Place) {
	_, err := p.Receiver(p.Sessions).ReceiveMessages(p.Context, 1, nil)
	place.Refused(err)
	place.True(strings.Contains(err.Error(), "amqp:not-allowed"), "%v", err)
})

// A queue without sessions refuses the receiver of a session.

package operations

import (
	"strings"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_receiver_refused", func(p *place.Place) {
	_, err := p.Client().AcceptSessionForQueue(p.Context, p.Queue, "any", nil)
	place.Refused(err)
	place.True(strings.Contains(err.Error(), "amqp:not-allowed"), "%v", err)
})

// A queue without sessions refuses the receiver of a session.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("session_receiver_refused", func(p *place.Place) {
	_, err := p.Client().AcceptSessionForQueue(p.Context, p.Queue, "any", nil)
	place.RefusedAs(err, "amqp:not-allowed")
})

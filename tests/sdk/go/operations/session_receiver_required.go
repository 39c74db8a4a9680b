// A queue with sessions refuses a receiver without one.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("session_receiver_required", func(p *place.Place) {
	_, err := p.Receiver(p.Sessions).ReceiveMessages(p.Context, 1, nil)
	place.RefusedAs(err, "amqp:not-allowed")
})

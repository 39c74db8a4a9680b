// A client opens and closes, with a sender and a receiver.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("connect", func(p *place.Place) {
	place.Must(p.Sender(p.Queue).NewMessageBatch(p.Context, nil)) // it is this that opens the link
	place.Must(p.Receiver(p.Queue).PeekMessages(p.Context, 1, nil))
	place.Check(p.Client().Close(p.Context))
})

// One message is sent and arrives.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("send_single", func(p *place.Place) {
	body := place.Own("body")
	p.Send(p.Queue, place.Texts(body)...)
	receiver := p.Receiver(p.Queue)
	message := p.ReceiveOne(receiver)
	place.Equal(string(message.Body), body, "body")
	place.True(message.MessageID != "", "the service gives an id to a message that has none")
	p.Complete(receiver, message)
})

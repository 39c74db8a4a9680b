// Twenty senders and twenty receivers share one client and its connection.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("many_links", func(p *place.Place) {
	const links = 20
	var receivers []*azservicebus.Receiver
	for _, body := range place.Numbered(links) {
		p.Send(p.Queue, place.Texts(body)...)
		receivers = append(receivers, p.Receiver(p.Queue))
	}
	var found []string
	for _, receiver := range receivers {
		message := p.ReceiveOne(receiver)
		p.Complete(receiver, message)
		found = append(found, string(message.Body))
	}
	place.SameTexts(place.Sorted(found), place.Numbered(links))
})

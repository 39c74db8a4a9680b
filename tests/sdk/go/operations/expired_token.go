// A shared access signature whose time is over is refused.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("expired_token", func(p *place.Place) {
	sender := place.Must(p.ClientOf(p.ConnectionExpired).NewSender(p.Queue, nil))
	place.Refused(sender.SendMessage(p.Context, &azservicebus.Message{}, nil), azservicebus.CodeUnauthorizedAccess)
})

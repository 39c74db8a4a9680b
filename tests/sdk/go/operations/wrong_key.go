// A key that is not the policy's is refused.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("wrong_key", func(p *place.Place) {
	sender := place.Must(p.ClientOf(p.ConnectionWrongKey).NewSender(p.Queue, nil))
	place.Refused(sender.SendMessage(p.Context, &azservicebus.Message{}, nil), azservicebus.CodeUnauthorizedAccess)
})

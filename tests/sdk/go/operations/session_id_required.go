// A queue with sessions refuses a message that has no session id.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_id_required", func(p *place.Place) {
	place.Refused(p.Sender(p.Sessions).SendMessage(p.Context, &azservicebus.Message{}, nil))
})

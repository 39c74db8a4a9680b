// A session id and a different partition key on one message are refused by the service.

package operations

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("partition_key_mismatch_refused", func(p *place.Place) {
	message := &azservicebus.Message{SessionID: place.To(place.Own("session")), PartitionKey: place.To("another")}
	place.Refused(p.Sender(p.Sessions).SendMessage(p.Context, message, nil))
})

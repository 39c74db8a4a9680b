// Package administration has the operations of the administration client.
package administration

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"partitionedqueue/sdk/place"
)

func client(p *place.Place) *admin.Client {
	return place.Must(admin.NewClientFromConnectionString(p.Administration, nil))
}

func get(p *place.Place, name string) *admin.GetQueueResponse {
	return place.Must(client(p).GetQueue(p.Context, name, nil))
}

// refused is what must have failed with that HTTP status.
func refused(err error, status int) {
	var told *azcore.ResponseError
	place.True(errors.As(err, &told) && told.StatusCode == status, "not refused with %d but: %v", status, err)
}

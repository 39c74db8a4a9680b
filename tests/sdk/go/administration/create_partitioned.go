// A partitioned queue is made, shows 16 times its size and takes messages at once; a second one of its name is refused.

package administration

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("administration.create_partitioned", func(p *place.Place) {
	made := place.Must(client(p).CreateQueue(p.Context, p.Administered, &admin.CreateQueueOptions{
		Properties: &admin.QueueProperties{
			EnablePartitioning: place.To(true),
			MaxSizeInMegabytes: place.To(int32(1024)),
			LockDuration:       place.To("PT30S"),
			MaxDeliveryCount:   place.To(int32(7)),
			UserMetadata:       place.To("a < b & c"),
		},
	}))
	place.Equal(*made.MaxSizeInMegabytes, 16*1024, "size")
	p.Send(p.Administered, place.Texts("0", "1", "2")...)
	for _, name := range []string{p.Administered, strings.ToLower(p.Administered)} {
		found := get(p, name)
		place.Equal(*found.EnablePartitioning, true, "partitioned")
		place.Equal(*found.MaxSizeInMegabytes, 16*1024, "size")
		place.Equal(*found.LockDuration, "PT30S", "lock")
		place.Equal(*found.MaxDeliveryCount, 7, "deliveries")
		place.Equal(*found.UserMetadata, "a < b & c", "metadata")
	}
	_, err := client(p).CreateQueue(p.Context, p.Administered, nil)
	refused(err, 409)
})

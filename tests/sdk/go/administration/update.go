// What may change of a queue changes; what may not is refused, and nothing changes.

package administration

import "partitionedqueue/sdk/place"

var _ = place.Add("administration.update", func(p *place.Place) {
	wanted := get(p, p.Administered).QueueProperties
	wanted.LockDuration = place.To("PT45S")
	wanted.DeadLetteringOnMessageExpiration = place.To(true)
	wanted.UserMetadata = nil
	place.Must(client(p).UpdateQueue(p.Context, p.Administered, wanted, nil))
	found := get(p, p.Administered).QueueProperties
	place.Equal(*found.LockDuration, "PT45S", "lock")
	place.Equal(*found.DeadLetteringOnMessageExpiration, true, "dead-lettering")
	place.True(found.UserMetadata == nil, "there is metadata")
	place.Equal(*found.MaxDeliveryCount, 7, "deliveries")
	found.RequiresSession = place.To(true)
	found.MaxDeliveryCount = place.To(int32(8))
	_, err := client(p).UpdateQueue(p.Context, p.Administered, found, nil)
	refused(err, 400)
	place.Equal(*get(p, p.Administered).MaxDeliveryCount, 7, "deliveries")
})

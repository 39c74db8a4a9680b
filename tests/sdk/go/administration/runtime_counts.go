// What a queue holds is added up over its partitions.

package administration

import (
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("administration.runtime_counts", func(p *place.Place) {
	deadline := time.Now().Add(30 * time.Second)
	found := place.Must(client(p).GetQueueRuntimeProperties(p.Context, p.Administered, nil))
	for found.ActiveMessageCount != 3 {
		place.True(time.Now().Before(deadline), "%d messages", found.ActiveMessageCount)
		time.Sleep(300 * time.Millisecond)
		found = place.Must(client(p).GetQueueRuntimeProperties(p.Context, p.Administered, nil))
	}
	place.Equal(found.TotalMessageCount, 3, "messages")
	place.True(found.SizeInBytes > 0, "bytes")
	place.Equal(found.DeadLetterMessageCount, 0, "dead letters")
	place.Equal(found.ScheduledMessageCount, 0, "scheduled")
	place.True(time.Since(found.CreatedAt) < time.Hour, "made at %v", found.CreatedAt)
})

// Messages that a receiver fetched ahead and did not look at come back when it closes, as if never delivered.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("close_gives_back_prefetched", func(*place.Place) {
	panic(place.AbsentFromSdk("it does not fetch ahead"))
})

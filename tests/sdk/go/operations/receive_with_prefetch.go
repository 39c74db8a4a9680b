// A receiver that fetches ahead gives each message once.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("receive_with_prefetch", func(*place.Place) {
	panic(place.AbsentFromSdk("it does not fetch ahead"))
})

// A handler is given what is there and what comes later.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("receive_streaming", func(*place.Place) {
	panic(place.AbsentFromSdk("it has no handlers"))
})

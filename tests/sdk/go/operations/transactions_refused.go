// Transactions come later; until then they are refused in a way that harms nobody else.

package operations

import "partitionedqueue/sdk/place"

var _ = place.Add("transactions_refused", func(*place.Place) {
	panic(place.AbsentFromSdk("it has no transactions"))
})

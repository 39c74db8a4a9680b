// A queue is deleted with the messages that it holds; what is not there cannot be found, changed or deleted.

package administration

import "partitionedqueue/sdk/place"

var _ = place.Add("administration.delete", func(p *place.Place) {
	queue := get(p, p.Administered).QueueProperties
	place.Must(client(p).DeleteQueue(p.Context, p.Administered, nil))
	place.True(get(p, p.Administered) == nil, "it is there still")
	place.True(get(p, p.Missing) == nil, "it was never there")
	_, err := client(p).UpdateQueue(p.Context, p.Administered, queue, nil)
	refused(err, 404)
	_, err = client(p).DeleteQueue(p.Context, p.Administered, nil)
	refused(err, 404)
})

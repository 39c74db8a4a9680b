// Queues are listed page by page, each of them once; there are no topics.

package administration

import (
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("administration.list_pages", func(p *place.Place) {
	var names []string
	pages := client(p).NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: 2})
	for longest := 0; pages.More(); {
		page := place.Must(pages.NextPage(p.Context))
		longest = max(longest, len(page.Queues))
		place.True(longest <= 2, "%d in a page", longest)
		for _, queue := range page.Queues {
			place.True(!slices.Contains(names, queue.QueueName), "%s is there twice", queue.QueueName)
			names = append(names, queue.QueueName)
		}
	}
	var counted []string
	for more := client(p).NewListQueuesRuntimePropertiesPager(nil); more.More(); {
		for _, queue := range place.Must(more.NextPage(p.Context)).QueueRuntimeProperties {
			counted = append(counted, queue.QueueName)
		}
	}
	for _, name := range []string{p.Administered, "list-a", "list-b", "list-c"} { // others may come and go meanwhile
		place.True(slices.Contains(names, name) && slices.Contains(counted, name), "%s is in no page", name)
	}
	place.True(!slices.Contains(names, p.Missing), "%s is there", p.Missing)
	topics := place.Must(client(p).NewListTopicsPager(nil).NextPage(p.Context))
	place.Equal(len(topics.Topics), 0, "topics")
	place.True(place.Must(client(p).GetNamespaceProperties(p.Context, nil)).Name != "", "the namespace has no name")
})

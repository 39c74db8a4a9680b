// The sessions that have messages or state are listed.

package operations

import (
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_list", func(p *place.Place) {
	withMessage, withState := place.Own("session"), place.Own("session")
	p.Send(p.Sessions, &azservicebus.Message{SessionID: &withMessage})
	holder := p.Session(withState)
	place.Check(holder.SetSessionState(p.Context, []byte("here"), nil))
	listed := func() (found []string) {
		for pager := p.Client().NewListSessionsForQueuePager(p.Sessions, nil); pager.More(); {
			found = append(found, place.Must(pager.NextPage(p.Context)).Sessions...)
		}
		return found
	}
	sessions := listed()
	place.True(slices.Contains(sessions, withMessage) && slices.Contains(sessions, withState), "%v", sessions)
	place.Check(holder.SetSessionState(p.Context, nil, nil))
	place.Check(holder.Close(p.Context))
	receiver := p.Session(withMessage)
	p.Complete(receiver, p.ReceiveOne(receiver))
	place.Check(receiver.Close(p.Context))
	sessions = listed()
	place.True(!slices.Contains(sessions, withMessage) && !slices.Contains(sessions, withState), "%v", sessions)
})

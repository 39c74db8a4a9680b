// A session's state is set, read, kept after its messages, and cleared.

package operations

import (
	"bytes"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_state", func(p *place.Place) {
	id := place.Own("session")
	state := []byte("\x00state\xff")
	first := p.Session(id)
	place.Equal(len(place.Must(first.GetSessionState(p.Context, nil))), 0, "bytes of state")
	place.Check(first.SetSessionState(p.Context, state, nil))
	place.True(bytes.Equal(place.Must(first.GetSessionState(p.Context, nil)), state), "another state")
	place.Check(first.Close(p.Context))
	second := p.Session(id)
	place.True(bytes.Equal(place.Must(second.GetSessionState(p.Context, nil)), state), "another state")
	place.Check(second.SetSessionState(p.Context, nil, nil))
	place.True(place.Must(second.GetSessionState(p.Context, nil)) == nil, "a state after it was cleared")
})

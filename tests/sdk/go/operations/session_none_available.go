// Where no session has messages, asking for the next one times out.

package operations

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("session_none_available", func(p *place.Place) {
	ctx, cancel := context.WithTimeout(p.Context, 3*time.Second)
	defer cancel()
	began := time.Now()
	_, err := p.Client().AcceptNextSessionForQueue(ctx, p.Sessions, nil)
	// The service is told to answer just before the context ends; on a busy machine that one may be the first.
	place.True(errors.Is(err, context.DeadlineExceeded) || place.Code(err) == azservicebus.CodeTimeout, "%v", err)
	took := time.Since(began)
	place.True(2*time.Second < took && took < 15*time.Second, "it took %v", took)
})

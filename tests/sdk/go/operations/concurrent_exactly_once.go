// Several senders and receivers at once: what was sent is received, each message once.

package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("concurrent_exactly_once", func(p *place.Place) {
	const senders, each, receivers = 3, 40, 3
	found := make(chan string, senders*each*2)
	failed := make(chan error, senders+receivers)
	ctx, enough := context.WithCancel(p.Context)
	defer enough()
	var wanted, got []string
	for one := range senders {
		sender := place.Must(p.ClientOf(p.Connection).NewSender(p.Queue, nil))
		bodies := place.Numbered(each)
		for index := range bodies {
			bodies[index] = fmt.Sprintf("%d-%s", one, bodies[index])
		}
		wanted = append(wanted, bodies...)
		go func() {
			for _, message := range place.Texts(bodies...) {
				if err := sender.SendMessage(ctx, message, nil); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	for range receivers {
		receiver := place.Must(p.ClientOf(p.Connection).NewReceiverForQueue(p.Queue, nil))
		go func() {
			for ctx.Err() == nil {
				messages, err := receiver.ReceiveMessages(ctx, 10, nil)
				for _, message := range messages {
					if err == nil {
						err = receiver.CompleteMessage(p.Context, message, nil)
					}
					found <- string(message.Body)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					failed <- err
				}
			}
		}()
	}
	for len(got) < len(wanted) {
		select {
		case body := <-found:
			got = append(got, body)
		case err := <-failed:
			place.Check(err)
		case <-time.After(30 * time.Second):
			place.Equal(len(got), len(wanted), "messages received")
		}
	}
	place.SameTexts(place.Sorted(got), place.Sorted(wanted))
})

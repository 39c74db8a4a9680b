// Every property that the service names arrives as it was sent, with those that the service adds.

package operations

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("send_properties", func(p *place.Place) {
	sent := &azservicebus.Message{
		Body:             []byte("all of them"),
		MessageID:        place.To(place.Own("id")),
		ContentType:      place.To("text/plain; charset=utf-8"),
		CorrelationID:    place.To("correlated"),
		Subject:          place.To("subject"),
		To:               place.To("to"),
		ReplyTo:          place.To("reply-to"),
		ReplyToSessionID: place.To("reply-to-session"),
		PartitionKey:     place.To("key"),
		TimeToLive:       place.To(10 * time.Minute),
	}
	p.Send(p.Queue, sent)
	receiver := p.Receiver(p.Queue)
	got := p.ReceiveOne(receiver)
	p.Complete(receiver, got)
	place.Equal(got.MessageID, *sent.MessageID, "message id")
	place.Equal(*got.ContentType, *sent.ContentType, "content type")
	place.Equal(*got.CorrelationID, *sent.CorrelationID, "correlation id")
	place.Equal(*got.Subject, *sent.Subject, "subject")
	place.Equal(*got.To, *sent.To, "to")
	place.Equal(*got.ReplyTo, *sent.ReplyTo, "reply to")
	place.Equal(*got.ReplyToSessionID, *sent.ReplyToSessionID, "reply to session id")
	place.Equal(*got.PartitionKey, *sent.PartitionKey, "partition key")
	place.Equal(*got.TimeToLive, *sent.TimeToLive, "time to live")
	place.True(*got.SequenceNumber > 0, "sequence number %d", *got.SequenceNumber)
	place.True(time.Since(*got.EnqueuedTime).Abs() < time.Minute, "enqueued at %v", got.EnqueuedTime)
	place.Equal(got.ExpiresAt.Sub(*got.EnqueuedTime), 10*time.Minute, "time until it expires")
	place.True(got.LockedUntil.After(time.Now()), "locked until %v", got.LockedUntil)
	place.Equal(got.DeliveryCount, 1, "delivery count")
	place.True(got.LockToken != [16]byte{}, "no lock token")
})

// Package place is where an operation happens: what the one who runs it has told, and what several operations do alike.
package place

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// AbsentFromSdk says what this SDK lacks.
type AbsentFromSdk string

// Operations by name; each file adds its own.
var Operations = map[string]func(*Place){}

// Add is called by each operation's file.
func Add(name string, operation func(*Place)) struct{} {
	Operations[name] = operation
	return struct{}{}
}

// Told are connection strings, and the names of the queues.
type Told struct {
	Connection         string `json:"connection"`
	ConnectionWrongKey string `json:"connection_wrong_key"`
	ConnectionExpired  string `json:"connection_expired"`
	ConnectionListen   string `json:"connection_listen"`
	Queue              string `json:"queue"`
	Brief              string `json:"brief"`
	Sessions           string `json:"sessions"`
	Missing            string `json:"missing"`
	Administration     string `json:"administration"`
	Administered       string `json:"administered"`
}

// Place ends, with an operation, everything that it has opened.
type Place struct {
	Told
	Context context.Context
	cancel  func()
	clients []*azservicebus.Client
}

// New is the place of one operation, which has a minute and a half.
func New(told Told) *Place {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	return &Place{Told: told, Context: ctx, cancel: cancel}
}

// Close closes every client.
func (p *Place) Close() {
	for _, client := range p.clients {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = client.Close(ctx)
		cancel()
	}
	p.cancel()
}

// Client is the operation's own, one connection.
func (p *Place) Client() *azservicebus.Client {
	if len(p.clients) == 0 {
		return p.ClientOf(p.Connection)
	}
	return p.clients[0]
}

// ClientOf is a connection by another connection string; it does not try again what has failed.
func (p *Place) ClientOf(connection string) *azservicebus.Client {
	options := &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}}
	client := Must(azservicebus.NewClientFromConnectionString(connection, options))
	p.clients = append(p.clients, client)
	return client
}

// Sender to a queue.
func (p *Place) Sender(queue string) *azservicebus.Sender {
	return Must(p.Client().NewSender(queue, nil))
}

// Receiver of a queue.
func (p *Place) Receiver(queue string) *azservicebus.Receiver {
	return Must(p.Client().NewReceiverForQueue(queue, nil))
}

// DeadLetters of a queue.
func (p *Place) DeadLetters(queue string) *azservicebus.Receiver {
	options := &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}
	return Must(p.Client().NewReceiverForQueue(queue, options))
}

// Session accepts one by name.
func (p *Place) Session(id string) *azservicebus.SessionReceiver {
	return Must(p.Client().AcceptSessionForQueue(p.Context, p.Sessions, id, nil))
}

// Send each message by itself.
func (p *Place) Send(queue string, messages ...*azservicebus.Message) {
	sender := p.Sender(queue)
	for _, message := range messages {
		Check(sender.SendMessage(p.Context, message, nil))
	}
}

// Batch of these messages.
func (p *Place) Batch(sender *azservicebus.Sender, messages ...*azservicebus.Message) *azservicebus.MessageBatch {
	batch := Must(sender.NewMessageBatch(p.Context, nil))
	for _, message := range messages {
		Check(batch.AddMessage(message, nil))
	}
	return batch
}

// Receiver with a session or without.
type Receiver interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	CompleteMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.CompleteMessageOptions) error
	PeekMessages(context.Context, int, *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// Receive exactly so many; a call of the SDK may give fewer.
func (p *Place) Receive(receiver Receiver, count int) []*azservicebus.ReceivedMessage {
	ctx, cancel := context.WithTimeout(p.Context, 25*time.Second)
	defer cancel()
	var found []*azservicebus.ReceivedMessage
	for len(found) < count {
		messages, err := receiver.ReceiveMessages(ctx, count-len(found), nil)
		if err != nil {
			panic(fmt.Sprintf("%d messages came instead of %d: %v", len(found), count, err))
		}
		found = append(found, messages...)
	}
	return found
}

// ReceiveOne message.
func (p *Place) ReceiveOne(receiver Receiver) *azservicebus.ReceivedMessage {
	return p.Receive(receiver, 1)[0]
}

// Complete them all.
func (p *Place) Complete(receiver Receiver, messages ...*azservicebus.ReceivedMessage) {
	for _, message := range messages {
		Check(receiver.CompleteMessage(p.Context, message, nil))
	}
}

// NothingComes within that time.
func (p *Place) NothingComes(receiver Receiver, within time.Duration) {
	ctx, cancel := context.WithTimeout(p.Context, within)
	defer cancel()
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if err == nil {
		panic(fmt.Sprintf("a message came that should not be there: %s", messages[0].Body))
	}
	Equal(errors.Is(err, context.DeadlineExceeded), true, err.Error())
}

// PeekFrom a sequence number.
func (p *Place) PeekFrom(receiver Receiver, most int, number int64) []*azservicebus.ReceivedMessage {
	return Must(receiver.PeekMessages(p.Context, most, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &number}))
}

// IsEmpty to a peek.
func (p *Place) IsEmpty(receiver Receiver) {
	Equal(len(p.PeekFrom(receiver, 1, 1)), 0, "messages peeked")
}

// Refused is what must have failed, with one of these codes where any are given.
func Refused(err error, codes ...azservicebus.Code) {
	if err == nil {
		panic(fmt.Sprintf("it was not refused with %v", codes))
	}
	if len(codes) > 0 && !slices.Contains(codes, Code(err)) {
		panic(fmt.Sprintf("not refused with %v but: %v", codes, err))
	}
}

// RefusedAs is for what has a condition on the wire and no code of the SDK.
func RefusedAs(err error, condition string) {
	Refused(err)
	True(strings.Contains(err.Error(), condition), "not refused with %s but: %v", condition, err)
}

// Code of an error; empty where it has none.
func Code(err error) azservicebus.Code {
	var told *azservicebus.Error
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}

// Must have succeeded.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check that it succeeded.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// Equal or else.
func Equal[T comparable](got, wanted T, what string) {
	if got != wanted {
		panic(fmt.Sprintf("%s: %v, not %v", what, got, wanted))
	}
}

// True or else.
func True(holds bool, what string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(what, values...))
	}
}

// Sorted copy.
func Sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }

// Bodies of messages, as text.
func Bodies(messages []*azservicebus.ReceivedMessage) []string {
	var bodies []string
	for _, message := range messages {
		bodies = append(bodies, string(message.Body))
	}
	return bodies
}

// Numbered texts from 000 on, in the order of the alphabet too.
func Numbered(count int) []string {
	var texts []string
	for number := range count {
		texts = append(texts, fmt.Sprintf("%03d", number))
	}
	return texts
}

// Texts as messages.
func Texts(bodies ...string) []*azservicebus.Message {
	var messages []*azservicebus.Message
	for _, body := range bodies {
		messages = append(messages, &azservicebus.Message{Body: []byte(body)})
	}
	return messages
}

// SameTexts in the same order.
func SameTexts(got, wanted []string) { True(slices.Equal(got, wanted), "%v, not %v", got, wanted) }

// Own is a name that nobody else uses.
func Own(word string) string { return word + "-" + rand.Text()[:12] }

// To makes a pointer of a value.
func To[T any](value T) *T { return &value }

// Every kind of body: data, several data, none, a value, a sequence.

package operations

import (
	"reflect"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("send_bodies", func(p *place.Place) {
	sender, receiver := p.Sender(p.Queue), p.Receiver(p.Queue)
	for _, body := range []azservicebus.AMQPAnnotatedMessageBody{
		{Data: [][]byte{[]byte("one")}},
		{Data: [][]byte{[]byte("one"), []byte("two")}},
		{Data: [][]byte{{}}},
		{Value: map[string]any{"a": int64(1)}},
		{Value: "text"},
		{Sequence: [][]any{{"a", int64(1)}, {"b"}}},
	} {
		place.Check(sender.SendAMQPAnnotatedMessage(p.Context, &azservicebus.AMQPAnnotatedMessage{Body: body}, nil))
		message := p.ReceiveOne(receiver)
		p.Complete(receiver, message)
		got := message.RawAMQPMessage.Body
		place.True(reflect.DeepEqual(got, body), "%#v, not %#v", got, body)
	}
})

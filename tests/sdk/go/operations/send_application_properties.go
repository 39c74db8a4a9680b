// Application properties of every type that the SDK writes arrive as they were.

package operations

import (
	"reflect"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"partitionedqueue/sdk/place"
)

var _ = place.Add("send_application_properties", func(p *place.Place) {
	sent := map[string]any{
		"text":     "größer",
		"empty":    "",
		"true":     true,
		"false":    false,
		"byte":     uint8(7),
		"short":    int16(-300),
		"int":      int32(-1),
		"long":     int64(1) << 40,
		"unsigned": uint32(1) << 31,
		"ulong":    uint64(1) << 63,
		"float":    float32(2.5),
		"double":   -2.25,
		"time":     time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC),
		"binary":   []byte{0, 1, 255},
		"nothing":  nil,
	}
	p.Send(p.Queue, &azservicebus.Message{ApplicationProperties: sent})
	receiver := p.Receiver(p.Queue)
	got := p.ReceiveOne(receiver)
	p.Complete(receiver, got)
	at, isTime := got.ApplicationProperties["time"].(time.Time)
	place.True(isTime, "%v is no time", got.ApplicationProperties["time"])
	got.ApplicationProperties["time"] = at.UTC()
	place.True(reflect.DeepEqual(got.ApplicationProperties, sent), "%#v, not %#v", got.ApplicationProperties, sent)
})

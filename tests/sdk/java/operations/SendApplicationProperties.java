package operations;

import static java.time.Duration.ofMillis;
import static sdk.Place.equal;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.net.URI;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import sdk.Operation;
import sdk.Place;

/** Application properties of every type that the SDK writes arrive as they were. */
public final class SendApplicationProperties implements Operation {
    @Override
    public void run(Place place) throws Exception {
        Map<String, Object> sent = new HashMap<>();
        sent.put("text", "größer");
        sent.put("empty", "");
        sent.put("true", true);
        sent.put("byte", (byte) -7);
        sent.put("short", (short) -300);
        sent.put("int", -1);
        sent.put("long", 1L << 40);
        sent.put("float", 2.5f);
        sent.put("double", -2.25);
        sent.put("uuid", UUID.randomUUID());
        sent.put("time", OffsetDateTime.of(2026, 11, 21, 12, 30, 0, 0, ZoneOffset.UTC));
        sent.put("duration", ofMillis(1500));
        sent.put("uri", URI.create("http://example.org/a"));
        ServiceBusMessage message = new ServiceBusMessage("typed");
        message.getApplicationProperties().putAll(sent);
        place.send(place.queue, message);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        ServiceBusReceivedMessage got = receiveOne(receiver);
        receiver.complete(got);
        equal(new HashMap<>(got.getApplicationProperties()), sent, "application properties");
    }
}

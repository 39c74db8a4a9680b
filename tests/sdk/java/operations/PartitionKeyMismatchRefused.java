package operations;

import static sdk.Place.attempt;
import static sdk.Place.inSession;
import static sdk.Place.own;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import sdk.Operation;
import sdk.Place;

/** A session id and a different partition key on one message are refused: by the SDK, and by the service. */
public final class PartitionKeyMismatchRefused implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusMessage message = inSession(own("session"), "refused");
        try {
            message.setPartitionKey("another");
            throw new AssertionError("the SDK took another partition key");
        } catch (IllegalArgumentException expected) {
            message.getRawAmqpMessage().getMessageAnnotations().put("x-opt-partition-key", "another");
        }
        ServiceBusSenderClient sender = place.sender(place.sessions);
        refused(attempt(() -> sender.sendMessage(message)));
    }
}

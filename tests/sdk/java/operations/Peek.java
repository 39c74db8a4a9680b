package operations;

import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.isEmpty;
import static sdk.Place.numbered;
import static sdk.Place.peek;
import static sdk.Place.receive;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A peek shows messages and neither locks nor removes them. */
public final class Peek implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 3;
        place.sendBatch(place.queue, numbered(count));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        for (int times = 0; times < 2; times++) {
            equal(bodies(peek(receiver, 10, 1)), numbered(count), "bodies");
        }
        List<ServiceBusReceivedMessage> messages = receive(receiver, count);
        messages.forEach(message -> equal(message.getDeliveryCount(), 0L, "delivery count"));
        complete(receiver, messages);
        isEmpty(receiver);
    }
}

package operations;

import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.numbered;
import static sdk.Place.peek;
import static sdk.Place.receive;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A peek begins at a sequence number, and goes on where the last one ended. */
public final class PeekFromSequenceNumber implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 6;
        place.sendBatch(place.queue, numbered(count));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> all = receiver.peekMessages(count).stream().toList();
        equal(all.size(), count, "messages peeked");
        for (int start = 0; start < count; start++) {
            var peeked = peek(receiver, 2, all.get(start).getSequenceNumber());
            equal(bodies(peeked), bodies(all.subList(start, Math.min(start + 2, count))), "from " + start);
        }
        complete(receiver, receive(receiver, count));
    }
}

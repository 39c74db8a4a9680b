package operations;

import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.numbered;
import static sdk.Place.peek;
import static sdk.Place.receive;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A peek over all partitions gives as many as were asked for, in the order of their sequence numbers. */
public final class PeekMany implements Operation {
    @Override
    public void run(Place place) throws Exception {
        List<String> wanted = numbered(120);
        for (int start = 0; start < wanted.size(); start += 3) {
            place.sendBatch(place.queue, wanted.subList(start, start + 3));
        }
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> peeked = new ArrayList<>(peek(receiver, 100, 1));
        equal(peeked.size(), 100, "messages peeked");
        peeked.addAll(peek(receiver, 100, peeked.get(99).getSequenceNumber() + 1));
        List<Long> numbers = peeked.stream().map(ServiceBusReceivedMessage::getSequenceNumber).toList();
        equal(numbers, numbers.stream().distinct().sorted().toList(), "sequence numbers");
        equal(sorted(bodies(peeked)), wanted, "bodies");
        complete(receiver, receive(receiver, wanted.size()));
    }
}

package operations;

import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.numbered;
import static sdk.Place.receive;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** Several messages are scheduled at once; each has a sequence number. */
public final class ScheduleMany implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 5;
        List<Long> numbers = new ArrayList<>();
        place.sender(place.queue)
            .scheduleMessages(numbered(count).stream().map(ServiceBusMessage::new).toList(),
                OffsetDateTime.now().plusSeconds(2))
            .forEach(numbers::add);
        equal(numbers.stream().distinct().count(), (long) count, "sequence numbers");
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> messages = receive(receiver, count);
        complete(receiver, messages);
        equal(sorted(bodies(messages)), numbered(count), "bodies");
    }
}

package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.isEmpty;
import static sdk.Place.nothingComes;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A scheduled message that is cancelled never comes. That it is cancelled already is nothing to this SDK. */
public final class CancelScheduled implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.queue);
        List<Long> numbers = new ArrayList<>();
        sender.scheduleMessages(List.of(new ServiceBusMessage("never"), new ServiceBusMessage("nor this")),
            OffsetDateTime.now().plusSeconds(2)).forEach(numbers::add);
        sender.cancelScheduledMessages(numbers);
        sender.cancelScheduledMessages(numbers);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        isEmpty(receiver);
        nothingComes(receiver, ofSeconds(3));
    }
}

package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGE_NOT_FOUND;
import static java.time.Duration.ofSeconds;
import static sdk.Place.attempt;
import static sdk.Place.isEmpty;
import static sdk.Place.nothingComes;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A scheduled message that is cancelled never comes; cancelling what is not scheduled is told. */
public final class CancelScheduled implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.queue);
        List<Long> numbers = new ArrayList<>();
        sender.scheduleMessages(List.of(new ServiceBusMessage("never"), new ServiceBusMessage("nor this")),
            OffsetDateTime.now().plusSeconds(2)).forEach(numbers::add);
        sender.cancelScheduledMessages(numbers);
        refused(attempt(() -> sender.cancelScheduledMessages(numbers)), MESSAGE_NOT_FOUND);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        isEmpty(receiver);
        nothingComes(receiver, ofSeconds(3));
    }
}

package operations;

import static sdk.Place.attempt;
import static sdk.Place.isEmpty;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A batch whose messages have different keys is refused whole. */
public final class MixedKeysRefused implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.queue);
        List<ServiceBusMessage> messages = List.of(
            new ServiceBusMessage("mixed").setPartitionKey("one"),
            new ServiceBusMessage("mixed").setPartitionKey("another"));
        refused(attempt(() -> sender.sendMessages(messages)));
        isEmpty(place.receiver(place.queue));
    }
}

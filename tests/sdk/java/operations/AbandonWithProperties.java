package operations;

import static sdk.Place.equal;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import java.util.Map;
import sdk.Operation;
import sdk.Place;

/** An abandoned message may be given changed properties. */
public final class AbandonWithProperties implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusMessage sent = new ServiceBusMessage("again");
        sent.getApplicationProperties().putAll(Map.of("kept", "yes", "tries", 0));
        place.send(place.queue, sent);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        var changes = new AbandonOptions().setPropertiesToModify(Map.of("tries", 1, "added", "now"));
        receiver.abandon(receiveOne(receiver), changes);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiver.complete(message);
        equal(Map.copyOf(message.getApplicationProperties()), Map.of("kept", "yes", "tries", 1, "added", "now"), "properties");
    }
}

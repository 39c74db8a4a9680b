package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED;
import static java.time.Duration.ofSeconds;
import static sdk.Place.attempt;
import static sdk.Place.equal;
import static sdk.Place.nothingComes;
import static sdk.Place.receiveOne;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import sdk.Operation;
import sdk.Place;

/** A message above the limit is refused, and the sender goes on. */
public final class SendTooLarge implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.queue);
        var large = new ServiceBusMessage(new byte[2_000_000]);
        refused(attempt(() -> sender.sendMessage(large)), MESSAGE_SIZE_EXCEEDED);
        sender.sendMessage(new ServiceBusMessage("small"));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        equal(message.getBody().toString(), "small", "body");
        receiver.complete(message);
        nothingComes(receiver, ofSeconds(1));
    }
}

package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.nothingComes;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** After as many deliveries as the queue allows, three here, a message is dead-lettered. */
public final class MaxDeliveryCount implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.send(place.queue, new ServiceBusMessage("never right"));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        for (long earlier = 0; earlier < 3; earlier++) {
            ServiceBusReceivedMessage message = receiveOne(receiver);
            equal(message.getDeliveryCount(), earlier, "delivery count");
            receiver.abandon(message);
        }
        nothingComes(receiver, ofSeconds(1));
        ServiceBusReceiverClient deadLetters = place.deadLetters(place.queue);
        ServiceBusReceivedMessage dead = receiveOne(deadLetters);
        equal(dead.getDeadLetterReason(), "MaxDeliveryCountExceeded", "reason");
        deadLetters.complete(dead);
    }
}

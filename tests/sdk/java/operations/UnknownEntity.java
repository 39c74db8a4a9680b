package operations;

import static com.azure.core.amqp.exception.AmqpErrorCondition.NOT_FOUND;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND;
import static java.time.Duration.ofSeconds;
import static sdk.Place.attempt;
import static sdk.Place.refused;
import static sdk.Place.refusedAs;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import sdk.Operation;
import sdk.Place;

/** A queue that does not exist is named as such, to senders and to receivers. */
public final class UnknownEntity implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.missing);
        ServiceBusReceiverClient receiver = place.receiver(place.missing);
        refused(attempt(() -> sender.sendMessage(new ServiceBusMessage("nowhere"))), MESSAGING_ENTITY_NOT_FOUND);
        refusedAs(NOT_FOUND, () -> {
            for (int times = 0; times < 5; times++) { // a receive may end before the link does
                receiver.receiveMessages(1, ofSeconds(2)).forEach(receiver::complete);
            }
            return null;
        });
    }
}

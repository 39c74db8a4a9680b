package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGE_LOCK_LOST;
import static sdk.Place.attempt;
import static sdk.Place.receiveOne;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** Whoever settles after the lock has run out is told that it was lost. */
public final class SettleAfterExpiry implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.send(place.brief, new ServiceBusMessage("too late"));
        ServiceBusReceiverClient receiver = place.receiver(place.brief);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        Thread.sleep(6000);
        refused(attempt(() -> receiver.complete(message)), MESSAGE_LOCK_LOST);
        refused(() -> receiver.renewMessageLock(message), MESSAGE_LOCK_LOST);
        receiver.complete(receiveOne(receiver));
    }
}

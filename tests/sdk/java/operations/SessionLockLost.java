package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.SESSION_LOCK_LOST;
import static sdk.Place.attempt;
import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.own;
import static sdk.Place.receiveOne;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** Whoever goes on after a session's lock has run out is told that it was lost, and its message comes again, counted. */
public final class SessionLockLost implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int lockSeconds = 10;
        String id = own("session");
        place.send(place.sessions, inSession(id, "held too long"));
        ServiceBusReceiverClient holder = place.session(place.sessions, id);
        ServiceBusReceivedMessage held = receiveOne(holder);
        Thread.sleep(lockSeconds * 1000 + 1000);
        refused(holder::renewSessionLock, SESSION_LOCK_LOST);
        refused(attempt(() -> holder.complete(held)));
        holder.close();
        ServiceBusReceiverClient receiver = place.session(place.sessions, id);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        equal(message.getDeliveryCount(), 1L, "delivery count");
        receiver.complete(message);
    }
}

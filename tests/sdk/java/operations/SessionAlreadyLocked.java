package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.SESSION_CANNOT_BE_LOCKED;
import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.own;
import static sdk.Place.receiveOne;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A session that another receiver holds cannot be accepted, and can be once that one has closed. */
public final class SessionAlreadyLocked implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String id = own("session");
        place.send(place.sessions, inSession(id, "held"));
        ServiceBusReceiverClient holder = place.session(place.sessions, id);
        refused(() -> place.session(place.sessions, id), SESSION_CANNOT_BE_LOCKED);
        holder.close();
        ServiceBusReceiverClient receiver = place.session(place.sessions, id);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        equal(message.getDeliveryCount(), 0L, "delivery count");
        receiver.complete(message);
    }
}

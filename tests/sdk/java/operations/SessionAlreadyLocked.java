package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.own;
import static sdk.Place.receiveOne;
import static sdk.Place.refusedAs;

import com.azure.core.amqp.exception.AmqpErrorCondition;
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
        var another = place.builder(place.connection, ofSeconds(20));
        refusedAs(AmqpErrorCondition.SESSION_CANNOT_BE_LOCKED, () -> place.session(another, place.sessions, id));
        holder.close();
        ServiceBusReceiverClient receiver = place.session(place.sessions, id);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        equal(message.getDeliveryCount(), 0L, "delivery count");
        receiver.complete(message);
    }
}

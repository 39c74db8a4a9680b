package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.isEmpty;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** Within a session a message is deferred, received by its number and completed. */
public final class SessionDeferred implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String id = own("session");
        place.send(place.sessions, inSession(id, "later"));
        ServiceBusReceiverClient receiver = place.session(place.sessions, id);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiver.defer(message);
        nothingComes(receiver, ofSeconds(1));
        ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(message.getSequenceNumber());
        equal(deferred.getBody().toString(), "later", "body");
        equal(deferred.getSessionId(), id, "session id");
        receiver.complete(deferred);
        isEmpty(receiver);
    }
}

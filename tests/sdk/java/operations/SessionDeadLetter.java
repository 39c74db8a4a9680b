package operations;

import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import sdk.Operation;
import sdk.Place;

/** The dead-letter queue of a queue with sessions is read without sessions. */
public final class SessionDeadLetter implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String id = own("session");
        place.send(place.sessions, inSession(id, "unwanted"));
        ServiceBusReceiverClient receiver = place.session(place.sessions, id);
        receiver.deadLetter(receiveOne(receiver), new DeadLetterOptions().setDeadLetterReason("why"));
        receiver.close();
        ServiceBusReceiverClient deadLetters = place.deadLetters(place.sessions);
        ServiceBusReceivedMessage dead = receiveOne(deadLetters);
        equal(dead.getBody().toString(), "unwanted", "body");
        equal(dead.getSessionId(), id, "session id");
        equal(dead.getDeadLetterReason(), "why", "reason");
        deadLetters.complete(dead);
    }
}

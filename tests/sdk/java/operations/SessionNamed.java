package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A session that is accepted by name gives its own messages only. */
public final class SessionNamed implements Operation {
    @Override
    public void run(Place place) throws Exception {
        List<String> ids = List.of(own("session"), own("session"));
        for (String id : ids) {
            place.send(place.sessions, inSession(id, id));
        }
        for (String id : ids) {
            ServiceBusReceiverClient receiver = place.session(place.sessions, id);
            equal(receiver.getSessionId(), id, "session id");
            ServiceBusReceivedMessage message = receiveOne(receiver);
            equal(message.getBody().toString(), id, "body");
            equal(message.getSessionId(), id, "session id");
            receiver.complete(message);
            nothingComes(receiver, ofSeconds(1));
            receiver.close();
        }
    }
}

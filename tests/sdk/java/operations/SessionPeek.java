package operations;

import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.numbered;
import static sdk.Place.own;
import static sdk.Place.peek;
import static sdk.Place.receive;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A peek by the receiver of a session shows that session's messages only. */
public final class SessionPeek implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 3;
        List<String> ids = List.of(own("session"), own("session"));
        for (String body : numbered(count)) {
            for (String id : ids) {
                place.send(place.sessions, inSession(id, body));
            }
        }
        for (String id : ids) {
            ServiceBusReceiverClient receiver = place.session(place.sessions, id);
            List<ServiceBusReceivedMessage> peeked = peek(receiver, 10, 1);
            equal(bodies(peeked), numbered(count), "bodies");
            peeked.forEach(message -> equal(message.getSessionId(), id, "session id"));
            complete(receiver, receive(receiver, count));
            receiver.close();
        }
    }
}

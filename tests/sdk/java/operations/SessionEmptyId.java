package operations;

import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.nio.charset.StandardCharsets;
import sdk.Operation;
import sdk.Place;

/** The empty text is a session's id like any other. */
public final class SessionEmptyId implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.send(place.sessions, inSession("", "empty"));
        ServiceBusReceiverClient receiver = place.session(place.sessions, "");
        equal(receiver.getSessionId(), "", "session id");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        equal(message.getBody().toString(), "empty", "body");
        equal(message.getSessionId(), "", "session id");
        receiver.setSessionState("its own".getBytes(StandardCharsets.UTF_8));
        equal(new String(receiver.getSessionState(), StandardCharsets.UTF_8), "its own", "state");
        receiver.setSessionState(null);
        receiver.complete(message);
    }
}

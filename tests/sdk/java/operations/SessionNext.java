package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.own;
import static sdk.Place.receiveOne;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** The next session that has messages is accepted without a name, each once. */
public final class SessionNext implements Operation {
    @Override
    public void run(Place place) throws Exception {
        List<String> wanted = new ArrayList<>();
        List<String> found = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            String id = own("session");
            wanted.add(id);
            place.send(place.sessions, inSession(id, id));
        }
        while (found.size() < wanted.size()) {
            ServiceBusReceiverClient receiver = place.nextSession(ofSeconds(20));
            ServiceBusReceivedMessage message = receiveOne(receiver);
            equal(message.getSessionId(), receiver.getSessionId(), "session id");
            receiver.complete(message);
            found.add(receiver.getSessionId());
        }
        equal(sorted(found), sorted(wanted), "sessions");
    }
}

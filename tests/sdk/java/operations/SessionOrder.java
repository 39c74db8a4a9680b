package operations;

import static sdk.Place.equal;
import static sdk.Place.inSession;
import static sdk.Place.numbered;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A session's messages come in the order in which they were sent, also after one was abandoned. */
public final class SessionOrder implements Operation {
    @Override
    public void run(Place place) throws Exception {
        List<String> wanted = numbered(10);
        String id = own("session");
        ServiceBusSenderClient sender = place.sender(place.sessions);
        wanted.forEach(body -> sender.sendMessage(inSession(id, body)));
        ServiceBusReceiverClient receiver = place.session(place.sessions, id);
        receiver.abandon(receiveOne(receiver));
        List<String> found = new ArrayList<>();
        while (found.size() < wanted.size()) {
            ServiceBusReceivedMessage message = receiveOne(receiver);
            found.add(message.getBody().toString());
            receiver.complete(message);
        }
        equal(found, wanted, "bodies");
    }
}

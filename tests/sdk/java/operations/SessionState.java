package operations;

import static sdk.Place.equal;
import static sdk.Place.own;

import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A session's state is set, read, kept after its messages, and cleared. */
public final class SessionState implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String id = own("session");
        byte[] state = {0, 1, -1};
        ServiceBusReceiverClient first = place.session(place.sessions, id);
        equal(first.getSessionState(), null, "state");
        first.setSessionState(state);
        equal(first.getSessionState(), state, "state");
        first.close();
        ServiceBusReceiverClient second = place.session(place.sessions, id);
        equal(second.getSessionState(), state, "state");
        second.setSessionState(null);
        equal(second.getSessionState(), null, "state");
    }
}

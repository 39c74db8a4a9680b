package operations;

import static sdk.Place.attempt;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import sdk.Operation;
import sdk.Place;

/** A queue with sessions refuses a message that has no session id. */
public final class SessionIdRequired implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.sessions);
        refused(attempt(() -> sender.sendMessage(new ServiceBusMessage("of no session"))));
    }
}

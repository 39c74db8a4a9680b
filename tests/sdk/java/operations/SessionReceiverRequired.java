package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A queue with sessions refuses a receiver without one. */
public final class SessionReceiverRequired implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusReceiverClient receiver = place.receiver(place.sessions);
        refused(() -> receiver.receiveMessages(1, ofSeconds(2)).stream().toList());
    }
}

package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.check;

import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A queue with sessions refuses a receiver without one. */
public final class SessionReceiverRequired implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusReceiverClient receiver = place.receiver(place.sessions);
        try {
            for (int times = 0; times < 5; times++) { // a receive may end before the link does
                receiver.receiveMessages(1, ofSeconds(2)).forEach(receiver::complete);
            }
        } catch (RuntimeException error) { // whose cause is how this SDK says amqp:not-allowed
            check(error.getCause() instanceof UnsupportedOperationException, "not that refusal: " + error.getCause());
            return;
        }
        throw new AssertionError("it was not refused");
    }
}

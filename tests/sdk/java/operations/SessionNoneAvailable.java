package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.SERVICE_TIMEOUT;
import static java.time.Duration.ofSeconds;
import static sdk.Place.check;
import static sdk.Place.equal;

import com.azure.messaging.servicebus.ServiceBusException;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import sdk.Operation;
import sdk.Place;

/** Where no session has messages, asking for the next one times out. */
public final class SessionNoneAvailable implements Operation {
    @Override
    public void run(Place place) throws Exception {
        long began = System.nanoTime();
        try {
            place.nextSession(ofSeconds(2));
            throw new AssertionError("a session was accepted");
        } catch (IllegalStateException expected) {
            check(expected.getCause() instanceof TimeoutException, "not a timeout: " + expected);
        } catch (ServiceBusException error) {
            equal(error.getReason(), SERVICE_TIMEOUT, "reason");
        }
        Duration took = Duration.ofNanos(System.nanoTime() - began);
        check(took.toMillis() > 500 && took.toSeconds() < 15, "it took " + took); // it asks for less than it is given
    }
}

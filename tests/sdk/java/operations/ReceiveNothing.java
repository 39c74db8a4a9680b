package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.check;
import static sdk.Place.nothingComes;

import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.Duration;
import sdk.Operation;
import sdk.Place;

/** A receive from an empty queue ends with nothing when its time is over, not before and not much later. */
public final class ReceiveNothing implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        long began = System.nanoTime();
        nothingComes(receiver, ofSeconds(2));
        Duration took = Duration.ofNanos(System.nanoTime() - began);
        check(took.toMillis() > 1500 && took.toMillis() < 6000, "it took " + took);
    }
}

package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.UNAUTHORIZED;
import static java.time.Duration.ofSeconds;
import static sdk.Place.attempt;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import sdk.Operation;
import sdk.Place;

/** A shared access signature whose time is over is refused. */
public final class ExpiredToken implements Operation {
    @Override
    public void run(Place place) throws Exception {
        var sender = place.closing(
            place.builder(place.connectionExpired, ofSeconds(20)).sender().queueName(place.queue).buildClient());
        refused(attempt(() -> sender.sendMessage(new ServiceBusMessage("refused"))), UNAUTHORIZED);
    }
}

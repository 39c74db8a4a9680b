package operations;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.UNAUTHORIZED;
import static java.time.Duration.ofSeconds;
import static sdk.Place.attempt;
import static sdk.Place.receiveOne;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import sdk.Operation;
import sdk.Place;

/** A policy with the right to listen receives, and may not send. */
public final class ListenOnlyKey implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.send(place.queue, new ServiceBusMessage("for whoever listens"));
        var builder = place.builder(place.connectionListen, ofSeconds(20));
        var receiver = place.closing(builder.receiver().queueName(place.queue).disableAutoComplete().buildClient());
        receiver.complete(receiveOne(receiver));
        var sender = place.closing(builder.sender().queueName(place.queue).buildClient());
        refused(attempt(() -> sender.sendMessage(new ServiceBusMessage("refused"))), UNAUTHORIZED);
    }
}

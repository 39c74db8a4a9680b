package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A message that nobody took in time is in the dead-letter queue, where its queue says so. */
public final class TimeToLive implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String body = own("short");
        place.send(place.queue, new ServiceBusMessage(body).setTimeToLive(ofSeconds(1)));
        ServiceBusReceiverClient deadLetters = place.deadLetters(place.queue);
        ServiceBusReceivedMessage dead = receiveOne(deadLetters);
        equal(dead.getBody().toString(), body, "body");
        equal(dead.getDeadLetterReason(), "TTLExpiredException", "reason");
        deadLetters.complete(dead);
        nothingComes(place.receiver(place.queue), ofSeconds(1));
    }
}

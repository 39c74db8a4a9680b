package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.isEmpty;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.util.Map;
import sdk.Operation;
import sdk.Place;

/** A dead-lettered message is in the dead-letter queue, with reason, description and source. */
public final class DeadLetter implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String body = own("unwanted");
        ServiceBusMessage message = new ServiceBusMessage(body);
        message.getApplicationProperties().put("kept", "yes");
        place.send(place.queue, message);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        receiver.deadLetter(receiveOne(receiver), new DeadLetterOptions()
            .setDeadLetterReason("the reason")
            .setDeadLetterErrorDescription("the words")
            .setPropertiesToModify(Map.of("added", 1)));
        nothingComes(receiver, ofSeconds(1));
        ServiceBusReceiverClient deadLetters = place.deadLetters(place.queue);
        ServiceBusReceivedMessage dead = receiveOne(deadLetters);
        equal(dead.getBody().toString(), body, "body");
        equal(dead.getDeadLetterReason(), "the reason", "reason");
        equal(dead.getDeadLetterErrorDescription(), "the words", "description");
        equal(dead.getApplicationProperties().get("kept"), "yes", "property kept");
        equal(dead.getApplicationProperties().get("added"), 1, "property added");
        deadLetters.complete(dead);
        isEmpty(deadLetters);
    }
}

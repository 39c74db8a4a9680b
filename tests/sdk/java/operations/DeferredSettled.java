package operations;

import static sdk.Place.equal;
import static sdk.Place.receive;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A deferred message that was received can be abandoned (and stays deferred), renewed, dead-lettered and completed. */
public final class DeferredSettled implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.sendBatch(place.queue, List.of("first", "second"));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        messages.forEach(receiver::defer);
        List<Long> numbers = messages.stream().map(ServiceBusReceivedMessage::getSequenceNumber).toList();
        var deferred = receiver.receiveDeferredMessageBatch(numbers).stream().toList();
        equal(deferred.size(), 2, "deferred messages");
        receiver.abandon(deferred.get(0));
        receiver.renewMessageLock(deferred.get(1));
        receiver.deadLetter(deferred.get(1),
            new DeadLetterOptions().setDeadLetterReason("deferred").setDeadLetterErrorDescription("and not wanted"));
        receiver.complete(receiver.receiveDeferredMessage(deferred.get(0).getSequenceNumber()));
        ServiceBusReceiverClient deadLetters = place.deadLetters(place.queue);
        ServiceBusReceivedMessage dead = receiveOne(deadLetters);
        deadLetters.complete(dead);
        equal(dead.getBody().toString(), deferred.get(1).getBody().toString(), "body");
        equal(dead.getDeadLetterReason(), "deferred", "reason");
    }
}

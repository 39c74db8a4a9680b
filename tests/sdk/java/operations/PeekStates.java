package operations;

import static sdk.Place.equal;
import static sdk.Place.peek;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.Map;
import sdk.Operation;
import sdk.Place;

/** A peek shows whether a message is active, deferred or scheduled. */
public final class PeekStates implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.queue);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        sender.sendMessage(new ServiceBusMessage("deferred").setPartitionKey("one"));
        ServiceBusReceivedMessage deferred = receiveOne(receiver);
        receiver.defer(deferred);
        sender.sendMessage(new ServiceBusMessage("active").setPartitionKey("one"));
        Long number = sender.scheduleMessage(
            new ServiceBusMessage("scheduled").setPartitionKey("one"), OffsetDateTime.now().plusMinutes(10));
        Map<String, ServiceBusMessageState> states = new HashMap<>();
        peek(receiver, 10, 1).forEach(message -> states.put(message.getBody().toString(), message.getState()));
        equal(states, Map.of(
            "deferred", ServiceBusMessageState.DEFERRED,
            "active", ServiceBusMessageState.ACTIVE,
            "scheduled", ServiceBusMessageState.SCHEDULED), "states");
        sender.cancelScheduledMessage(number);
        receiver.complete(receiver.receiveDeferredMessage(deferred.getSequenceNumber()));
        receiver.complete(receiveOne(receiver));
    }
}

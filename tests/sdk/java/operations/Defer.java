package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.check;
import static sdk.Place.equal;
import static sdk.Place.isEmpty;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A deferred message is received by its sequence number only. */
public final class Defer implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String body = own("later");
        place.send(place.queue, new ServiceBusMessage(body));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiver.defer(message);
        nothingComes(receiver, ofSeconds(1));
        ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(message.getSequenceNumber());
        equal(deferred.getBody().toString(), body, "body");
        check(deferred.getLockToken() != null, "no lock token");
        receiver.complete(deferred);
        isEmpty(receiver);
    }
}

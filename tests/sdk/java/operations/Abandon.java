package operations;

import static sdk.Place.equal;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** An abandoned message comes again at once, with one delivery more. */
public final class Abandon implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.send(place.queue, new ServiceBusMessage("again"));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        ServiceBusReceivedMessage first = receiveOne(receiver);
        receiver.abandon(first);
        ServiceBusReceivedMessage second = receiveOne(receiver);
        equal(first.getDeliveryCount(), 0L, "first delivery count");
        equal(second.getDeliveryCount(), 1L, "second delivery count");
        equal(second.getSequenceNumber(), first.getSequenceNumber(), "sequence number");
        receiver.complete(second);
    }
}

package operations;

import static sdk.Place.equal;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A message whose lock runs out comes again, with one delivery more. */
public final class LockExpiry implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.send(place.brief, new ServiceBusMessage("again"));
        ServiceBusReceivedMessage first = receiveOne(place.receiver(place.brief));
        ServiceBusReceiverClient receiver = place.receiver(place.brief);
        ServiceBusReceivedMessage second = receiveOne(receiver);
        equal(first.getDeliveryCount(), 0L, "first delivery count");
        equal(second.getDeliveryCount(), 1L, "second delivery count");
        equal(second.getSequenceNumber(), first.getSequenceNumber(), "sequence number");
        receiver.complete(second);
    }
}

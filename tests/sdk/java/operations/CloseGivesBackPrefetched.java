package operations;

import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.numbered;
import static sdk.Place.receive;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** Messages that a receiver fetched ahead and did not look at come back when it closes, as if never delivered. */
public final class CloseGivesBackPrefetched implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 10;
        place.sendBatch(place.queue, numbered(count));
        ServiceBusReceiverClient ahead = place.receiver(place.queue, count);
        ahead.complete(receiveOne(ahead));
        Thread.sleep(500);
        ahead.close();
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> messages = receive(receiver, count - 1);
        complete(receiver, messages);
        messages.forEach(message -> equal(message.getDeliveryCount(), 0L, "delivery count"));
    }
}

package operations;

import static sdk.Place.complete;
import static sdk.Place.isEmpty;
import static sdk.Place.numbered;
import static sdk.Place.receive;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** Messages that a receiver fetched ahead and did not look at come back when it closes: here when their locks run out. */
public final class CloseGivesBackPrefetched implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 10;
        // One by one: where duplicates are looked for, each goes by its own id.
        place.send(place.brief, numbered(count).stream().map(ServiceBusMessage::new).toArray(ServiceBusMessage[]::new));
        ServiceBusReceiverClient ahead = place.receiver(place.brief, count);
        ahead.complete(receiveOne(ahead));
        Thread.sleep(500);
        ahead.close(); // and says nothing of what it has fetched
        ServiceBusReceiverClient receiver = place.receiver(place.brief);
        complete(receiver, receive(receiver, count - 1));
        isEmpty(receiver);
    }
}

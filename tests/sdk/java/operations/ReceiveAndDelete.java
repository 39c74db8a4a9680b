package operations;

import static sdk.Place.bodies;
import static sdk.Place.equal;
import static sdk.Place.isEmpty;
import static sdk.Place.numbered;
import static sdk.Place.receive;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** In this mode a message is gone once it was received. */
public final class ReceiveAndDelete implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 5;
        place.sendBatch(place.queue, numbered(count));
        ServiceBusReceiverClient receiver = place.deleting(place.queue);
        equal(sorted(bodies(receive(receiver, count))), numbered(count), "bodies");
        isEmpty(receiver);
    }
}

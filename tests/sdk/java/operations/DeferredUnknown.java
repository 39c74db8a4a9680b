package operations;

import static sdk.Place.equal;

import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A sequence number that is no deferred message's gives nothing. */
public final class DeferredUnknown implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        equal(receiver.receiveDeferredMessageBatch(List.of(1_000_000L)).stream().count(), 0L, "messages");
    }
}

package operations;

import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.isEmpty;
import static sdk.Place.numbered;
import static sdk.Place.receive;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A receiver that fetches ahead gives each message once. */
public final class ReceiveWithPrefetch implements Operation {
    @Override
    public void run(Place place) throws Exception {
        List<String> wanted = numbered(60);
        for (int start = 0; start < wanted.size(); start += 10) {
            place.sendBatch(place.queue, wanted.subList(start, start + 10));
        }
        ServiceBusReceiverClient receiver = place.receiver(place.queue, 40);
        List<ServiceBusReceivedMessage> messages = receive(receiver, wanted.size());
        complete(receiver, messages);
        equal(sorted(bodies(messages)), wanted, "bodies");
        isEmpty(receiver);
    }
}

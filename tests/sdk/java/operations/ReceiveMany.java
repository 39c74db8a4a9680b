package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.bodies;
import static sdk.Place.check;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.nothingComes;
import static sdk.Place.numbered;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** Three hundred messages in all partitions come, each once, in receives of up to fifty. */
public final class ReceiveMany implements Operation {
    @Override
    public void run(Place place) throws Exception {
        List<String> wanted = numbered(300);
        for (int start = 0; start < wanted.size(); start += 10) {
            place.sendBatch(place.queue, wanted.subList(start, start + 10));
        }
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<String> found = new ArrayList<>();
        while (found.size() < wanted.size()) {
            List<ServiceBusReceivedMessage> messages = receiver.receiveMessages(50, ofSeconds(10)).stream().toList();
            check(!messages.isEmpty(), "after " + found.size() + " messages nothing came");
            found.addAll(bodies(messages));
            complete(receiver, messages);
        }
        nothingComes(receiver, ofSeconds(1));
        equal(sorted(found), wanted, "bodies");
    }
}

package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receive;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A second message with the id of the first is accepted and dropped; each partition key has its own ids. */
public final class DuplicateDetection implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String id = own("id");
        ServiceBusSenderClient sender = place.sender(place.brief);
        for (String key : List.of("", "", "one", "one", "another")) {
            ServiceBusMessage message = new ServiceBusMessage(key).setMessageId(id);
            sender.sendMessage(key.isEmpty() ? message : message.setPartitionKey(key));
        }
        List<String> wanted = List.of("", "another", "one");
        ServiceBusReceiverClient receiver = place.receiver(place.brief);
        List<ServiceBusReceivedMessage> messages = receive(receiver, wanted.size());
        complete(receiver, messages);
        nothingComes(receiver, ofSeconds(1));
        equal(sorted(bodies(messages)), wanted, "bodies");
    }
}

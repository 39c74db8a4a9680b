package operations;

import static sdk.Place.bodies;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.numbered;
import static sdk.Place.own;
import static sdk.Place.receive;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** Messages with one key keep their order, in one partition, and show their key. */
public final class SendPartitionKey implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 10;
        String key = own("key");
        ServiceBusSenderClient sender = place.sender(place.queue);
        for (String body : numbered(count)) {
            sender.sendMessage(new ServiceBusMessage(body).setPartitionKey(key));
        }
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> messages = receive(receiver, count);
        complete(receiver, messages);
        equal(bodies(messages), numbered(count), "bodies");
        messages.forEach(message -> equal(message.getPartitionKey(), key, "partition key"));
        equal(messages.stream().map(message -> message.getSequenceNumber() >> 48).distinct().count(), 1L, "partitions");
    }
}

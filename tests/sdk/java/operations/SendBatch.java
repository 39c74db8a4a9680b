package operations;

import static sdk.Place.check;
import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.receive;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** The SDK's batch takes messages until it is full, is sent, and all of them arrive. */
public final class SendBatch implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String body = "x".repeat(10_000);
        ServiceBusSenderClient sender = place.sender(place.queue);
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        while (batch.getCount() < 1000 && batch.tryAddMessage(new ServiceBusMessage(body))) {
            // until it is full
        }
        int count = batch.getCount();
        check(20 <= count && count < 1000, "a batch takes " + count + " messages of 10 KB");
        sender.sendMessages(batch);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> messages = receive(receiver, count);
        complete(receiver, messages);
        messages.forEach(message -> equal(message.getBody().toString(), body, "body"));
    }
}

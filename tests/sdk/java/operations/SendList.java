package operations;

import static sdk.Place.complete;
import static sdk.Place.equal;
import static sdk.Place.own;
import static sdk.Place.receive;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.List;
import java.util.stream.IntStream;
import sdk.Operation;
import sdk.Place;

/** A list of messages is sent at once, and all arrive. */
public final class SendList implements Operation {
    @Override
    public void run(Place place) throws Exception {
        List<String> ids = IntStream.range(0, 10).mapToObj(number -> own("id")).toList();
        place.sender(place.queue)
            .sendMessages(ids.stream().map(id -> new ServiceBusMessage("listed").setMessageId(id)).toList());
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<ServiceBusReceivedMessage> messages = receive(receiver, ids.size());
        complete(receiver, messages);
        equal(sorted(messages.stream().map(ServiceBusReceivedMessage::getMessageId).toList()), sorted(ids), "ids");
    }
}

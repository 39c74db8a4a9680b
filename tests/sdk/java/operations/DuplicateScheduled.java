package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.OffsetDateTime;
import sdk.Operation;
import sdk.Place;

/** A scheduled message counts when duplicates are looked for. */
public final class DuplicateScheduled implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String id = own("id");
        ServiceBusSenderClient sender = place.sender(place.brief);
        sender.scheduleMessage(
            new ServiceBusMessage("scheduled").setMessageId(id), OffsetDateTime.now().plusSeconds(1));
        sender.sendMessage(new ServiceBusMessage("sent").setMessageId(id));
        ServiceBusReceiverClient receiver = place.receiver(place.brief);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        equal(message.getBody().toString(), "scheduled", "body");
        receiver.complete(message);
        nothingComes(receiver, ofSeconds(1));
    }
}

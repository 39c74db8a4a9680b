package operations;

import static sdk.Place.equal;
import static sdk.Place.receiveOne;

import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.nio.charset.StandardCharsets;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** Every kind of body: data, none, a value, a sequence. */
public final class SendBodies implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.queue);
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        List<AmqpMessageBody> bodies = List.of(
            AmqpMessageBody.fromData("one".getBytes(StandardCharsets.UTF_8)),
            AmqpMessageBody.fromData(new byte[0]),
            AmqpMessageBody.fromValue("text"),
            AmqpMessageBody.fromValue(7L),
            AmqpMessageBody.fromSequence(List.of("a", 1L)));
        for (AmqpMessageBody sent : bodies) {
            sender.sendMessage(new ServiceBusMessage(sent));
            ServiceBusReceivedMessage message = receiveOne(receiver);
            receiver.complete(message);
            AmqpMessageBody got = message.getRawAmqpMessage().getBody();
            equal(got.getBodyType(), sent.getBodyType(), "kind of body");
            switch (got.getBodyType()) {
                case DATA -> equal(got.getFirstData(), sent.getFirstData(), "data");
                case VALUE -> equal(got.getValue(), sent.getValue(), "value");
                default -> equal(got.getSequence(), sent.getSequence(), "sequence");
            }
        }
    }
}

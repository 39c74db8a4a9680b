package operations;

import static sdk.Place.check;
import static sdk.Place.equal;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** One message is sent and arrives. */
public final class SendSingle implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String body = own("body");
        place.send(place.queue, new ServiceBusMessage(body));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        equal(message.getBody().toString(), body, "body");
        check(message.getMessageId() != null, "the service gives an id to a message that has none");
        receiver.complete(message);
    }
}

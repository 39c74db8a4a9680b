package operations;

import static sdk.Place.equal;
import static sdk.Place.numbered;
import static sdk.Place.receiveOne;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.util.ArrayList;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** Twenty senders and twenty receivers share one client and its connection. */
public final class ManyLinks implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int links = 20;
        List<String> found = new ArrayList<>();
        for (String body : numbered(links)) {
            place.sender(place.queue).sendMessage(new ServiceBusMessage(body));
        }
        for (int link = 0; link < links; link++) {
            ServiceBusReceiverClient receiver = place.receiver(place.queue);
            ServiceBusReceivedMessage message = receiveOne(receiver);
            found.add(message.getBody().toString());
            receiver.complete(message);
        }
        equal(sorted(found), numbered(links), "bodies");
    }
}

package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.isEmpty;
import static sdk.Place.nothingComes;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import sdk.Operation;
import sdk.Place;

/** A message that was completed does not come again. */
public final class ReceiveAndComplete implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.send(place.queue, new ServiceBusMessage("once"));
        ServiceBusReceiverClient first = place.receiver(place.queue);
        first.complete(receiveOne(first));
        first.close();
        ServiceBusReceiverClient second = place.receiver(place.queue);
        nothingComes(second, ofSeconds(1));
        isEmpty(second);
    }
}

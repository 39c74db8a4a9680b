package operations;

import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static sdk.Place.check;
import static sdk.Place.nothingComes;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.OffsetDateTime;
import sdk.Operation;
import sdk.Place;

/** A message that is sent with a time to be enqueued comes at that time. */
public final class ScheduleByProperty implements Operation {
    @Override
    public void run(Place place) throws Exception {
        OffsetDateTime at = OffsetDateTime.now().plusSeconds(3);
        place.send(place.queue, new ServiceBusMessage("later").setScheduledEnqueueTime(at));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        nothingComes(receiver, ofSeconds(1));
        ServiceBusReceivedMessage message = receiveOne(receiver);
        check(OffsetDateTime.now().isAfter(at.minus(ofMillis(100))), "it came before its time");
        receiver.complete(message);
    }
}

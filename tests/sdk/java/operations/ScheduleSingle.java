package operations;

import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static sdk.Place.check;
import static sdk.Place.equal;
import static sdk.Place.nothingComes;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.OffsetDateTime;
import sdk.Operation;
import sdk.Place;

/** A scheduled message comes at its time, not before. */
public final class ScheduleSingle implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String body = own("scheduled");
        OffsetDateTime at = OffsetDateTime.now().plusSeconds(3);
        check(place.sender(place.queue).scheduleMessage(new ServiceBusMessage(body), at) > 0, "no sequence number");
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        nothingComes(receiver, ofSeconds(1));
        ServiceBusReceivedMessage message = receiveOne(receiver);
        check(OffsetDateTime.now().isAfter(at.minus(ofMillis(100))), "it came before its time");
        equal(message.getBody().toString(), body, "body");
        check(!message.getEnqueuedTime().isBefore(message.getScheduledEnqueueTime()), "enqueued before its time");
        receiver.complete(message);
    }
}

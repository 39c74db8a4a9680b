package operations;

import static sdk.Place.check;
import static sdk.Place.isEmpty;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.OffsetDateTime;
import sdk.Operation;
import sdk.Place;

/** A renewed lock holds longer, again and again, beyond the queue's lock duration. */
public final class RenewMessageLock implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int lockSeconds = 5;
        place.send(place.brief, new ServiceBusMessage("held"));
        ServiceBusReceiverClient receiver = place.receiver(place.brief);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        for (int times = 0; times <= lockSeconds + 1; times++) {
            OffsetDateTime until = receiver.renewMessageLock(message);
            check(until.isAfter(OffsetDateTime.now().plusSeconds(lockSeconds - 2)), "locked until " + until);
            Thread.sleep(1000);
        }
        receiver.complete(message);
        isEmpty(receiver);
    }
}

package operations;

import static sdk.Place.check;
import static sdk.Place.inSession;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.OffsetDateTime;
import sdk.Operation;
import sdk.Place;

/** A session's lock is renewed as a whole, beyond the queue's lock duration. */
public final class SessionRenew implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int lockSeconds = 10;
        String id = own("session");
        place.send(place.sessions, inSession(id, "held"));
        ServiceBusReceiverClient receiver = place.session(place.sessions, id);
        ServiceBusReceivedMessage message = receiveOne(receiver);
        for (int times = 0; times < 3; times++) {
            Thread.sleep(lockSeconds * 400);
            OffsetDateTime until = receiver.renewSessionLock();
            check(until.isAfter(OffsetDateTime.now().plusSeconds(lockSeconds / 2)), "locked until " + until);
        }
        receiver.complete(message);
    }
}

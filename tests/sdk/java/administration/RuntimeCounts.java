package administration;

import static sdk.Place.check;
import static sdk.Place.equal;

import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import java.time.Instant;
import sdk.Operation;
import sdk.Place;

/** What a queue holds is added up over its partitions. */
public final class RuntimeCounts implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusAdministrationClient client = place.administrationClient();
        Instant deadline = Instant.now().plusSeconds(30);
        QueueRuntimeProperties found = client.getQueueRuntimeProperties(place.administered);
        while (found.getActiveMessageCount() != 3) {
            check(Instant.now().isBefore(deadline), found.getActiveMessageCount() + " messages");
            Thread.sleep(300);
            found = client.getQueueRuntimeProperties(place.administered);
        }
        equal(found.getTotalMessageCount(), 3L, "messages");
        check(found.getSizeInBytes() > 0, "bytes");
        equal(found.getDeadLetterMessageCount(), 0, "dead letters");
        equal(found.getScheduledMessageCount(), 0, "scheduled");
        check(found.getCreatedAt().toInstant().isAfter(deadline.minusSeconds(3600)), "made at " + found.getCreatedAt());
    }
}

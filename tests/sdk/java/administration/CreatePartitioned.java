package administration;

import static sdk.Place.equal;
import static sdk.Place.refusedWith;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import java.time.Duration;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** A partitioned queue is made, shows 16 times its size and takes messages at once; a second one of its name is refused. */
public final class CreatePartitioned implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusAdministrationClient client = place.administrationClient();
        QueueProperties made = client.createQueue(place.administered, new CreateQueueOptions()
            .setPartitioningEnabled(true)
            .setMaxSizeInMegabytes(1024)
            .setLockDuration(Duration.ofSeconds(30))
            .setMaxDeliveryCount(7)
            .setUserMetadata("a < b & c"));
        equal(made.getMaxSizeInMegabytes(), 16 * 1024L, "size");
        for (String body : List.of("0", "1", "2")) {
            place.send(place.administered, new ServiceBusMessage(body));
        }
        for (String name : List.of(place.administered, place.administered.toLowerCase())) {
            QueueProperties found = client.getQueue(name);
            equal(found.isPartitioningEnabled(), true, "partitioned");
            equal(found.getMaxSizeInMegabytes(), 16 * 1024L, "size");
            equal(found.getLockDuration(), Duration.ofSeconds(30), "lock");
            equal(found.getMaxDeliveryCount(), 7, "deliveries");
            equal(found.getUserMetadata(), "a < b & c", "metadata");
        }
        refusedWith(409, () -> client.createQueue(place.administered));
    }
}

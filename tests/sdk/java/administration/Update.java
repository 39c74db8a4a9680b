package administration;

import static sdk.Place.equal;
import static sdk.Place.refusedWith;

import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import java.time.Duration;
import sdk.Operation;
import sdk.Place;

/** What may change of a queue changes; what may not is refused, and nothing changes. */
public final class Update implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusAdministrationClient client = place.administrationClient();
        QueueProperties queue = client.getQueue(place.administered);
        queue.setLockDuration(Duration.ofSeconds(45)).setDeadLetteringOnMessageExpiration(true).setUserMetadata(null);
        client.updateQueue(queue);
        QueueProperties found = client.getQueue(place.administered);
        equal(found.getLockDuration(), Duration.ofSeconds(45), "lock");
        equal(found.isDeadLetteringOnMessageExpiration(), true, "dead-lettering");
        equal(found.getUserMetadata(), null, "metadata");
        equal(found.getMaxDeliveryCount(), 7, "deliveries");
        found.setMaxDeliveryCount(2001); // this client has no way to change what is fixed
        refusedWith(400, () -> client.updateQueue(found));
        equal(client.getQueue(place.administered).getMaxDeliveryCount(), 7, "deliveries");
    }
}

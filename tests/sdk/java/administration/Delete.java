package administration;

import static sdk.Place.equal;
import static sdk.Place.refusedWith;

import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import sdk.Operation;
import sdk.Place;

/** A queue is deleted with the messages that it holds; what is not there cannot be found, changed or deleted. */
public final class Delete implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusAdministrationClient client = place.administrationClient();
        QueueProperties queue = client.getQueue(place.administered);
        equal(client.getQueueExists(place.administered), true, "there");
        client.deleteQueue(place.administered);
        equal(client.getQueueExists(place.administered), false, "there");
        refusedWith(404, () -> client.getQueue(place.administered));
        refusedWith(404, () -> client.updateQueue(queue));
        refusedWith(404, () -> {
            client.deleteQueue(place.administered);
            return null;
        });
        refusedWith(404, () -> client.getQueueRuntimeProperties(place.missing));
    }
}

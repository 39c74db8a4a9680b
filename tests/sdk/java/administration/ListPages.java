package administration;

import static sdk.Place.check;
import static sdk.Place.equal;

import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import sdk.Operation;
import sdk.Place;

/** Queues are listed page by page, each of them once; there are no topics. */
public final class ListPages implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusAdministrationClient client = place.administrationClient();
        List<String> names = new ArrayList<>();
        client.listQueues().forEach(queue -> names.add(queue.getName()));
        equal(new HashSet<>(names).size(), names.size(), "names");
        check(names.containsAll(List.of(place.administered, "list-a", "list-b", "list-c")), "listed: " + names);
        check(!names.contains(place.missing), "listed: " + names);
        equal(client.listTopics().stream().count(), 0L, "topics");
        check(!client.getNamespaceProperties().getName().isEmpty(), "the namespace has no name");
    }
}

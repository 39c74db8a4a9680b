package operations;

import static sdk.Place.check;
import static sdk.Place.equal;
import static sdk.Place.numbered;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import sdk.Operation;
import sdk.Place;

/** A processor's handler is given what is there and what comes later. */
public final class ReceiveStreaming implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int count = 5;
        List<String> found = Collections.synchronizedList(new ArrayList<>());
        List<Throwable> errors = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch enough = new CountDownLatch(count);
        ServiceBusSenderClient sender = place.sender(place.queue);
        sender.sendMessage(new ServiceBusMessage("000"));
        var processor = place.closing(place.builder().processor()
            .queueName(place.queue)
            .processMessage(context -> {
                found.add(context.getMessage().getBody().toString());
                if (found.size() < count) {
                    sender.sendMessage(new ServiceBusMessage(numbered(count).get(found.size())));
                }
                enough.countDown();
            })
            .processError(context -> errors.add(context.getException()))
            .buildProcessorClient());
        processor.start();
        boolean all = enough.await(20, TimeUnit.SECONDS);
        Thread.sleep(500); // the last one is completed after its handler
        processor.stop();
        check(all && errors.isEmpty(), found + " came, and errors: " + errors);
        equal(found, numbered(count), "bodies");
    }
}

package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.equal;
import static sdk.Place.numbered;
import static sdk.Place.sorted;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import sdk.Operation;
import sdk.Place;

/** Several senders and receivers at once: what was sent is received, each message once. */
public final class ConcurrentExactlyOnce implements Operation {
    @Override
    public void run(Place place) throws Exception {
        int senders = 3;
        int each = 40;
        int receivers = 3;
        Queue<String> found = new ConcurrentLinkedQueue<>();
        List<String> wanted = new ArrayList<>();
        ExecutorService pool = Executors.newFixedThreadPool(senders + receivers);
        place.closing(pool::shutdown);
        List<Future<?>> working = new ArrayList<>();
        long deadline = System.nanoTime() + ofSeconds(40).toNanos();
        for (int one = 0; one < senders; one++) {
            int number = one;
            List<String> bodies = numbered(each).stream().map(body -> number + "-" + body).toList();
            wanted.addAll(bodies);
            var sender = place.closing(
                place.builder(place.connection, ofSeconds(30)).sender().queueName(place.queue).buildClient());
            working.add(pool.submit(() -> bodies.forEach(body -> sender.sendMessage(new ServiceBusMessage(body)))));
        }
        for (int one = 0; one < receivers; one++) {
            var receiver = place.closing(place.builder(place.connection, ofSeconds(30)).receiver()
                .queueName(place.queue).disableAutoComplete().buildClient());
            working.add(pool.submit(() -> {
                while (found.size() < senders * each && System.nanoTime() < deadline) {
                    for (ServiceBusReceivedMessage message : receiver.receiveMessages(10, ofSeconds(2))) {
                        receiver.complete(message);
                        found.add(message.getBody().toString());
                    }
                }
            }));
        }
        for (Future<?> task : working) {
            task.get();
        }
        equal(sorted(List.copyOf(found)), sorted(wanted), "bodies");
    }
}

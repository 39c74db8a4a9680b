package operations;

import static java.time.Duration.ofSeconds;
import static sdk.Place.check;
import static sdk.Place.complete;
import static sdk.Place.equal;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import sdk.Operation;
import sdk.Place;

/** A receive that waits is woken by a message that comes. */
public final class ReceiveWaiting implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        ServiceBusSenderClient sender = place.sender(place.queue);
        CompletableFuture<Long> sent = CompletableFuture.supplyAsync(() -> {
            sender.sendMessage(new ServiceBusMessage("wake up"));
            return System.nanoTime();
        }, CompletableFuture.delayedExecutor(1500, TimeUnit.MILLISECONDS));
        List<ServiceBusReceivedMessage> messages = receiver.receiveMessages(1, ofSeconds(20)).stream().toList();
        Duration after = Duration.ofNanos(System.nanoTime() - sent.get());
        check(after.toSeconds() < 3, "it came " + after + " after it was sent");
        equal(messages.size(), 1, "messages");
        complete(receiver, messages);
    }
}

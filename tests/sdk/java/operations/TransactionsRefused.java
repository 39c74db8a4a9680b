package operations;

import static sdk.Place.receiveOne;
import static sdk.Place.refused;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import sdk.Operation;
import sdk.Place;

/** Transactions come later; until then they are refused in a way that harms nobody else. */
public final class TransactionsRefused implements Operation {
    @Override
    public void run(Place place) throws Exception {
        ServiceBusSenderClient sender = place.sender(place.queue);
        refused(sender::createTransaction);
        sender.sendMessage(new ServiceBusMessage("goes on"));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        receiver.complete(receiveOne(receiver));
    }
}

package operations;

import static java.time.Duration.between;
import static java.time.Duration.ofMinutes;
import static sdk.Place.check;
import static sdk.Place.equal;
import static sdk.Place.own;
import static sdk.Place.receiveOne;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.OffsetDateTime;
import sdk.Operation;
import sdk.Place;

/** Every property that the service names arrives as it was sent, with those that the service adds. */
public final class SendProperties implements Operation {
    @Override
    public void run(Place place) throws Exception {
        String id = own("id");
        place.send(place.queue, new ServiceBusMessage("all of them")
            .setMessageId(id)
            .setContentType("text/plain; charset=utf-8")
            .setCorrelationId("correlated")
            .setSubject("subject")
            .setTo("to")
            .setReplyTo("reply-to")
            .setReplyToSessionId("reply-to-session")
            .setPartitionKey("key")
            .setTimeToLive(ofMinutes(10)));
        ServiceBusReceiverClient receiver = place.receiver(place.queue);
        ServiceBusReceivedMessage got = receiveOne(receiver);
        receiver.complete(got);
        equal(got.getMessageId(), id, "message id");
        equal(got.getContentType(), "text/plain; charset=utf-8", "content type");
        equal(got.getCorrelationId(), "correlated", "correlation id");
        equal(got.getSubject(), "subject", "subject");
        equal(got.getTo(), "to", "to");
        equal(got.getReplyTo(), "reply-to", "reply to");
        equal(got.getReplyToSessionId(), "reply-to-session", "reply to session id");
        equal(got.getPartitionKey(), "key", "partition key");
        equal(got.getTimeToLive(), ofMinutes(10), "time to live");
        check(got.getSequenceNumber() > 0, "sequence number " + got.getSequenceNumber());
        OffsetDateTime now = OffsetDateTime.now();
        check(between(got.getEnqueuedTime(), now).abs().toSeconds() < 60, "enqueued at " + got.getEnqueuedTime());
        equal(between(got.getEnqueuedTime(), got.getExpiresAt()), ofMinutes(10), "time until it expires");
        check(got.getLockedUntil().isAfter(now), "locked until " + got.getLockedUntil());
        equal(got.getDeliveryCount(), 0L, "delivery count");
        check(got.getLockToken() != null, "no lock token");
    }
}

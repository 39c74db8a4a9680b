package sdk;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.core.util.IterableStream;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;

/** Where an operation happens: what the one who runs it has told, and what several operations do alike. */
public final class Place implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(25);

    public final String connection;
    public final String connectionWrongKey;
    public final String connectionExpired;
    public final String connectionListen;
    public final String queue;
    public final String brief;
    public final String sessions;
    public final String missing;
    public final String administration;
    public final String administered;
    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private ServiceBusClientBuilder builder;

    Place(JsonNode told) {
        connection = told.get("connection").asText();
        connectionWrongKey = told.get("connection_wrong_key").asText();
        connectionExpired = told.get("connection_expired").asText();
        connectionListen = told.get("connection_listen").asText();
        queue = told.get("queue").asText();
        brief = told.get("brief").asText();
        sessions = told.get("sessions").asText();
        missing = told.get("missing").asText();
        administration = told.path("administration").asText();
        administered = told.path("administered").asText();
    }

    public ServiceBusAdministrationClient administrationClient() {
        return new ServiceBusAdministrationClientBuilder().connectionString(administration).buildClient();
    }

    /** With an operation everything ends that it has opened. */
    @Override
    public void close() throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }

    /** Clients of one builder share a connection. */
    public ServiceBusClientBuilder builder() {
        if (builder == null) {
            builder = builder(connection, Duration.ofSeconds(30));
        }
        return builder;
    }

    /** A further connection, which does not try again what has failed. */
    public ServiceBusClientBuilder builder(String connectionString, Duration timeout) {
        AmqpRetryOptions once = new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(timeout);
        return new ServiceBusClientBuilder().connectionString(connectionString).retryOptions(once);
    }

    /** Closed with the operation. */
    public <T extends AutoCloseable> T closing(T client) {
        opened.push(client);
        return client;
    }

    public ServiceBusSenderClient sender(String queueName) {
        return closing(builder().sender().queueName(queueName).buildClient());
    }

    /** It settles and renews nothing by itself. */
    public ServiceBusReceiverClient receiver(String queueName) {
        return receiver(queueName, 0);
    }

    public ServiceBusReceiverClient receiver(String queueName, int prefetch) {
        return closing(builder().receiver().queueName(queueName).prefetchCount(prefetch)
            .maxAutoLockRenewDuration(Duration.ZERO).disableAutoComplete().buildClient());
    }

    public ServiceBusReceiverClient deleting(String queueName) {
        return closing(builder().receiver().queueName(queueName)
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient());
    }

    public ServiceBusReceiverClient deadLetters(String queueName) {
        return closing(builder().receiver().queueName(queueName).subQueue(SubQueue.DEAD_LETTER_QUEUE)
            .maxAutoLockRenewDuration(Duration.ZERO).disableAutoComplete().buildClient());
    }

    /** Accepts a session by name, on a connection of its own: the SDK names a session's link by the session alone. */
    public ServiceBusReceiverClient session(String queueName, String id) {
        long deadline = System.nanoTime() + Duration.ofSeconds(5).toNanos();
        while (true) {
            try {
                return session(builder(connection, Duration.ofSeconds(30)), queueName, id);
            } catch (AmqpException refusal) {
                boolean held = refusal.getErrorCondition() == AmqpErrorCondition.SESSION_CANNOT_BE_LOCKED;
                if (!held || System.nanoTime() > deadline) { // closing goes on after close() has returned
                    throw refusal;
                }
            }
        }
    }

    public ServiceBusReceiverClient session(ServiceBusClientBuilder builderOfOne, String queueName, String id) {
        return closing(closing(builderOfOne.sessionReceiver().queueName(queueName)
            .maxAutoLockRenewDuration(Duration.ZERO).disableAutoComplete().buildClient()).acceptSession(id));
    }

    /** Accepts the next session that has messages. */
    public ServiceBusReceiverClient nextSession(Duration timeout) {
        return closing(closing(builder(connection, timeout).sessionReceiver().queueName(sessions)
            .maxAutoLockRenewDuration(Duration.ZERO).disableAutoComplete().buildClient()).acceptNextSession());
    }

    /** Sends each message by itself. */
    public void send(String queueName, ServiceBusMessage... messages) {
        try (ServiceBusSenderClient sender = builder().sender().queueName(queueName).buildClient()) {
            for (ServiceBusMessage message : messages) {
                sender.sendMessage(message);
            }
        }
    }

    /** Sends all at once. */
    public void sendBatch(String queueName, List<String> bodies) {
        try (ServiceBusSenderClient sender = builder().sender().queueName(queueName).buildClient()) {
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            for (String body : bodies) {
                check(batch.tryAddMessage(new ServiceBusMessage(body)), "the batch is full");
            }
            sender.sendMessages(batch);
        }
    }

    public static ServiceBusMessage inSession(String id, String body) {
        return new ServiceBusMessage(body).setSessionId(id);
    }

    /** Exactly so many; a call of the SDK may give fewer. */
    public static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient receiver, int count) {
        List<ServiceBusReceivedMessage> found = new ArrayList<>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (found.size() < count && System.nanoTime() < deadline) {
            receiver.receiveMessages(count - found.size(), Duration.ofSeconds(5)).forEach(found::add);
        }
        equal(found.size(), count, "messages received");
        return found;
    }

    public static ServiceBusReceivedMessage receiveOne(ServiceBusReceiverClient receiver) {
        return receive(receiver, 1).get(0);
    }

    public static void complete(ServiceBusReceiverClient receiver, List<ServiceBusReceivedMessage> messages) {
        messages.forEach(receiver::complete);
    }

    public static void nothingComes(ServiceBusReceiverClient receiver, Duration within) {
        List<String> found = bodies(receiver.receiveMessages(1, within));
        check(found.isEmpty(), "a message came that should not be there: " + found);
    }

    public static List<ServiceBusReceivedMessage> peek(ServiceBusReceiverClient receiver, int most, long number) {
        return receiver.peekMessages(most, number).stream().toList();
    }

    public static void isEmpty(ServiceBusReceiverClient receiver) {
        equal(peek(receiver, 1, 1).size(), 0, "messages peeked");
    }

    /** What is called must fail, with one of these reasons where any are given. */
    public static void refused(Callable<?> attempt, ServiceBusFailureReason... reasons) throws Exception {
        try {
            attempt.call();
        } catch (ServiceBusException error) {
            if (reasons.length > 0 && !List.of(reasons).contains(error.getReason())) {
                throw error;
            }
            return;
        }
        throw new AssertionError("it was not refused with " + List.of(reasons));
    }

    /** What is called must fail, for a cause with that condition on the wire: for what the SDK gives no reason. */
    public static void refusedAs(AmqpErrorCondition condition, Callable<?> attempt) throws Exception {
        try {
            attempt.call();
        } catch (RuntimeException error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof AmqpException told && told.getErrorCondition() == condition) {
                    return;
                }
            }
            throw error;
        }
        throw new AssertionError("it was not refused with " + condition);
    }

    /** What an administration client asks for must be refused with that HTTP status. */
    public static void refusedWith(int status, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (HttpResponseException error) {
            // An empty feed is this client's 404, and the answer's status 200.
            int told = error instanceof ResourceNotFoundException ? 404 : error.getResponse().getStatusCode();
            equal(told, status, "refused with");
            return;
        }
        throw new AssertionError("it was not refused with " + status);
    }

    /** A call without a result, for refused. */
    public static Callable<Void> attempt(Runnable call) {
        return () -> {
            call.run();
            return null;
        };
    }

    public static void equal(Object got, Object wanted, String what) {
        check(Objects.deepEquals(got, wanted), what + ": " + got + ", not " + wanted);
    }

    public static void check(boolean holds, String words) {
        if (!holds) {
            throw new AssertionError(words);
        }
    }

    public static List<String> bodies(Iterable<ServiceBusReceivedMessage> messages) {
        List<String> bodies = new ArrayList<>();
        messages.forEach(message -> bodies.add(message.getBody().toString()));
        return bodies;
    }

    public static List<String> bodies(IterableStream<ServiceBusReceivedMessage> messages) {
        return bodies(messages.stream().toList());
    }

    public static List<String> sorted(List<String> words) {
        return words.stream().sorted().toList();
    }

    /** Numbered texts from 000 on, in the order of the alphabet too. */
    public static List<String> numbered(int count) {
        return IntStream.range(0, count).mapToObj(number -> String.format("%03d", number)).toList();
    }

    /** A name that nobody else uses. */
    public static String own(String word) {
        return word + "-" + UUID.randomUUID().toString().substring(0, 13);
    }
}

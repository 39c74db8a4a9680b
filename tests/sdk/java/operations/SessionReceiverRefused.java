package operations;

import sdk.Operation;
import sdk.Place;

/** A queue without sessions refuses the receiver of a session. */
public final class SessionReceiverRefused implements Operation {
    @Override
    public void run(Place place) throws Exception {
        try {
            place.session(place.queue, "any");
        } catch (UnsupportedOperationException refused) { // which is how this SDK says amqp:not-allowed
            return;
        }
        throw new AssertionError("it was not refused");
    }
}

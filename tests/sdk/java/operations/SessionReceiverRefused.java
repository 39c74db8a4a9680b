package operations;

import static sdk.Place.refused;

import sdk.Operation;
import sdk.Place;

/** A queue without sessions refuses the receiver of a session. */
public final class SessionReceiverRefused implements Operation {
    @Override
    public void run(Place place) throws Exception {
        refused(() -> place.session(place.queue, "any"));
    }
}

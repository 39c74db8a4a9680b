package operations;

import static sdk.Place.equal;

import sdk.Operation;
import sdk.Place;

/** A sequence number that is no deferred message's gives nothing. */
public final class DeferredUnknown implements Operation {
    @Override
    public void run(Place place) throws Exception {
        equal(place.receiver(place.queue).receiveDeferredMessage(1_000_000), null, "message");
    }
}

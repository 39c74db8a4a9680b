package operations;

import static sdk.Place.peek;

import sdk.Operation;
import sdk.Place;

/** A client opens and closes, with a sender and a receiver. */
public final class Connect implements Operation {
    @Override
    public void run(Place place) throws Exception {
        place.sender(place.queue).createMessageBatch(); // it is this that opens the link
        peek(place.receiver(place.queue), 1, 1);
    }
}

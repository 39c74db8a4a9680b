package operations;

import sdk.AbsentFromSdk;
import sdk.Operation;
import sdk.Place;

/** The sessions that have messages or state are listed. */
public final class SessionList implements Operation {
    @Override
    public void run(Place place) throws Exception {
        throw new AbsentFromSdk("it does not list sessions");
    }
}

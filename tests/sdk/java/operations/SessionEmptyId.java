package operations;

import sdk.AbsentFromSdk;
import sdk.Operation;
import sdk.Place;

/** The empty text is a session's id like any other. */
public final class SessionEmptyId implements Operation {
    @Override
    public void run(Place place) throws Exception {
        throw new AbsentFromSdk("it takes no empty session id");
    }
}

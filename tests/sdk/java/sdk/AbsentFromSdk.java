package sdk;

/** This SDK has no such operation; the words say what it lacks. */
public final class AbsentFromSdk extends RuntimeException {
    private static final long serialVersionUID = 1;

    public AbsentFromSdk(String words) {
        super(words);
    }
}

package sdk;

/** One thing that the SDK can do; each has a file of its own in operations. */
public interface Operation {
    /** Ends by itself where all is well, with any exception otherwise. */
    void run(Place place) throws Exception;
}

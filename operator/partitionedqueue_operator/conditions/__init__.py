"""One pure function and file a status condition: how a queue stands in, what is told of it out."""

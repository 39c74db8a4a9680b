"""One pure function and file a Kubernetes object: the queue as its owner wants it in, a manifest out."""

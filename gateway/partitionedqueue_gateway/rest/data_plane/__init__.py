"""Messages over HTTP: sent, received under a lock or deleted, and settled, by the requests that Azure documents."""

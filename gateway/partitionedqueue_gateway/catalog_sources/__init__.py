"""Where the queues are written down: in a cluster, or in a folder. Each source feeds a catalog and knows no wire."""

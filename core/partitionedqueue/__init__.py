"""What a partitioned queue is (`model`) and how to speak to one of its broker pods (`broker`)."""

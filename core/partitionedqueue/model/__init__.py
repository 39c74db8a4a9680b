"""What a partitioned queue is. Nothing here opens a socket, reads a clock or draws a random number."""

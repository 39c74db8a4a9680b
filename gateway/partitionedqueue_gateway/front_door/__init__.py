"""Sockets: who knocks, in which protocol, and the end in good order. What is said behind the door is others' affair."""

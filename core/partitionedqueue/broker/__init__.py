"""How to speak to one broker pod: its keys, its commands as values, and the clients that carry them."""

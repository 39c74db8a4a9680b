"""The gateway: sixteen brokers and more look like one queue. Wires know entities; entities know no wire."""

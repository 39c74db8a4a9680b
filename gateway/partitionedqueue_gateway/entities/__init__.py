"""Queues and their brokers, as the gateway knows them: no wire, and nothing of where queues are written down."""

"""AMQP 1.0 as Service Bus' own clients speak it.

`engine` is the protocol: bytes in, events out. `conversation` and what it stands on turn those events into work on the
entities, and its results into AMQP again.
"""

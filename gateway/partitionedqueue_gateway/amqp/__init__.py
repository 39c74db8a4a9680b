"""AMQP 1.0 as Service Bus' own clients speak it.

The protocol's engine opens no socket, reads no clock and knows no queue: `connection` takes bytes and gives `events`.
It stands on `greeting` (SASL), `channels`, `amqp_session` with its halves `incoming` and `outgoing`, and `link`; these
on `framing`, `performatives` and `transfers` (the hot path), the codec: `values`, `encoding`, `decoding`, `sections`.
`conversation` and what it stands on turn those events into work on the entities, and its results into AMQP again.
"""

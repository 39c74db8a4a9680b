"""The protocol itself, as server and as client. Nothing here opens a socket, reads a clock or knows a queue.

`connection` takes bytes and gives `events`. It stands on `greeting` (SASL), `channels`, `amqp_session` with its halves
`incoming` and `outgoing`, and `link`; these on `framing`, `performatives` and `frequent_reading` and `frequent_writing`
(the hot path), and on the codec: `values`, `encoding`, `decoding`, `sections`.
"""

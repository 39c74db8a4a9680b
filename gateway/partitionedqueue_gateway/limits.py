"""Every bound of the gateway, each with its reason."""

from typing import Final

# Asking the brokers.
PARTITION_ANSWER_S_MAX: Final = 3.0
"""A partition that has not said within this how it stands is sick: a healthy one on a busy machine has."""

CONNECTS_AT_ONCE_MAX: Final = 64
"""Of 8,000 brokers that are asked for the first time. Names are looked up in threads; so many are not kept waiting."""

SICK_REST_FACTOR: Final = 4
"""A partition that took t seconds to fail is left alone for 4 t: at most a fifth of the time is spent on it."""

REPORT_FRESH_S: Final = 1.0
"""Counts so old are as good as new: many who ask do not multiply what brokers are asked."""

REPORTS_WAIT_S_MAX: Final = 8.0
"""For the counts of all queues; those that are not there by then are given as they were. Prometheus waits 10 s."""

PASSWORD_AGAIN_S_MIN: Final = 5.0
"""A Secret is read again no sooner, however many brokers refuse its password."""

# Queues in use.
SHARE_MIN: Final = 64
"""Messages that are asked of one partition, where so many are wanted and known to be there, before others are asked."""

SLOW_ASK_S: Final = 1.0
"""A partition that has not answered for so long keeps nobody waiting: what was asked of it is asked of others. What it
says later is given to whoever wants it by then, or back."""

LINGER_S: Final = 30.0
"""What is known of the partitions is kept for so long without receivers: one that comes back need not ask them all."""

DRAIN_S_MAX: Final = 1.0
"""A partition that does not answer keeps no drain waiting longer: clients give a link up that is not drained soon."""

DELETED_KEPT_S: Final = 5.0
"""What was deleted for a receiver that left is kept for the next one; after this it is put back into the queue."""

COMPLETE_AGAIN_S_MAX: Final = 30.0
"""A complete whose outcome is unknown is repeated for so long."""

CLOSE_S_MAX: Final = 5.0
"""At the end, what is under way to nobody is given back within this; then its locks are left to expire."""

PEEKS_AT_ONCE_MAX: Final = 16
"""Partitions that are looked into at the same time for one peek."""

# The cluster.
API_ANSWER_S_MAX: Final = 30.0
"""For one answer of the API server that is no watch."""

API_BYTES_MAX: Final = 64 << 20
"""Of one such answer: 100 queues of half a megabyte, which is more than etcd takes in one object."""

LIST_PAGE_MAX: Final = 100
"""Queues in one page of a list."""

WATCH_S_MIN: Final = 240
WATCH_S_MAX: Final = 360
"""The API server is asked to end a watch after a time between these: two gateways do not begin anew together."""

WATCH_SILENT_S_MAX: Final = 90.0
"""The API server sends a bookmark about every minute: a watch that is silent for so long is frozen, and begun anew."""

WATCH_EVENT_BYTES_MAX: Final = 4 << 20
"""etcd takes objects of 1.5 MB; in JSON, with what the API server adds, they stay below this."""

RETRY_S_MIN: Final = 0.2
RETRY_S_MAX: Final = 30.0
"""The wait before the API server is asked again doubles from the first to the last, and is drawn below that."""

FROZEN_S_MIN: Final = 300.0
"""A source that has tried nothing for so long is stuck: every wait above is shorter. Then /healthz says so."""

# A folder.
FOLDER_POLL_S: Final = 1.0
"""How often its files are looked at."""

MANIFEST_BYTES_MAX: Final = 16 << 20
"""Of one file."""

# HTTP.
REQUEST_BYTES_MAX: Final = 1 << 16
"""No request of today has a body."""

REQUESTS_AT_ONCE_MAX: Final = 256
"""Further ones are answered 503 at once."""

CONNECTIONS_MAX: Final = 1_024
"""Further ones are closed as they come."""

IDLE_S_MAX: Final = 75.0
"""A connection without a request, begun or not, is closed after this."""

DRAIN_S_DEFAULT: Final = 5.0
"""After SIGTERM /readyz says no for so long, while all else is answered: Services must leave this gateway out first."""

DRAIN_S_MAX: Final = 300.0

END_S_MAX: Final = 15.0
"""Then nothing new is taken, and what is under way has so long. With the drain it stays below a pod's 30 s of grace."""

NAME_LOOKUPS_AT_ONCE_MAX: Final = 32
"""Threads: one that waits for the name of a broker must not keep all others waiting."""

# Access.
KEY_LENGTH_MIN: Final = 12
"""Of a policy's key: Azure's have 44 characters, its emulator's is SAS_KEY_VALUE."""

TOKEN_LENGTH_MAX: Final = 8_192
"""Of a shared access signature: names of 260 characters, percent-encoded several times over, stay below this."""

POLICIES_MAX: Final = 1_000
"""Azure has 12 a namespace and 12 an entity."""

POLICY_BYTES_MAX: Final = 1 << 16
"""Of one file."""

SECRETS_POLL_S: Final = 2.0
"""How often files with keys and certificates are looked at; the kubelet itself takes up to a minute to change them."""

# The front door.
GREETING_S_MAX: Final = 20.0
"""For the first byte, TLS's handshake, and all that a client says before it has opened its connection."""

GREETINGS_MAX: Final = 1_000
"""Connections that have said nothing yet; when there are more, the one that has been silent longest is closed."""

DOOR_CONNECTIONS_MAX: Final = 6_000
"""Of all kinds in one process; further ones are closed as they come. Azure takes 5,000 for a namespace."""

WRITE_BUFFER_BYTES_MAX: Final = 1 << 20
"""What waits for a peer before its conversation is asked to pause: one frame of the largest size that SDKs offer."""

STALLED_S_MAX: Final = 60.0
"""A peer that has not read enough for so long to empty its buffer to a quarter is cut off."""

WEBSOCKET_MESSAGE_BYTES_MAX: Final = 4 << 20
"""AMQP's frames in one message; clients send one or a few at a time, of at most 1 MiB each."""

PROCESSES_MAX: Final = 64
"""On one machine, on the same ports."""

PROCESS_RESTART_S_MIN: Final = 0.2
PROCESS_RESTART_S_MAX: Final = 10.0
"""The wait before a process that has ended is started anew doubles from the first to the last."""

PROCESS_STEADY_S: Final = 30.0
"""One that has run for so long begins anew with the first."""

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

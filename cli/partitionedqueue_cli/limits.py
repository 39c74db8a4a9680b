"""Every bound of the command line and the embedded namespace, each with its reason."""

from typing import Final

REDIS_OLDEST: Final = (7, 0)
"""Functions came with Redis 7.0."""

STARTS_AT_ONCE_MAX: Final = 16
"""redis-servers that start side by side: 80 at once would only wait for the same cores."""

START_SECONDS_MAX: Final = 600.0
"""A broker of 1 GB loads its append-only file well within this, on a slow disk too."""

PORTS_TRIED_MAX: Final = 20
"""How often a port may be lost to somebody else before a start is given up."""

RESTARTS_IN_A_ROW_MAX: Final = 20
"""A broker that ends this often without staying up is given up; the others go on."""

RESTART_DELAY_SECONDS_FIRST: Final = 0.1
RESTART_DELAY_SECONDS_MAX: Final = 10.0
"""The wait before a restart doubles from the first to the last."""

STEADY_SECONDS: Final = 30.0
"""A broker that stayed up this long begins to count its restarts anew."""

STOP_SECONDS_MAX: Final = 15.0
"""From SIGTERM to SIGKILL: a last sync of 1 GB at most; whatever was acknowledged is safe either way."""

GATEWAY_START_SECONDS_MAX: Final = 60.0
"""From the start of its process to its word that it serves."""

GATEWAY_ANSWER_SECONDS_MAX: Final = 1.0
"""For one answer while it starts: somebody else may have its port, and never answer."""

GATEWAY_STOP_SECONDS_MAX: Final = 35.0
"""Twice what it gives those who are connected, and a little."""

REQUESTS_POLL_SECONDS: Final = 0.05
"""How often it is looked what the gateway asks for: somebody waits for a new queue."""

REQUEST_BYTES_MAX: Final = 1 << 20
"""Of one request; the gateway takes descriptions of 64 KB."""

DELETES_MAX: Final = 50
DELETE_AGAIN_SECONDS: Final = 0.1
"""How often, and how far apart, it is tried to take a folder away in which a broker may be ending still."""

DOWN_SECONDS_MAX: Final = 60.0
"""How long `pq down` waits for the supervisor to end."""

READY_POLL_SECONDS: Final = 0.02
"""How often a starting broker's log is looked at."""

LOG_BYTES_MAX: Final = 1 << 20
"""A broker's log beyond this is put aside at its next start; one older log is kept."""

TIMEOUT_SECONDS: Final = 10.0
"""What a command waits for a broker, unless --timeout says otherwise."""

STATUS_TIMEOUT_SECONDS: Final = 2.0
"""`pq status` waits less: a broker that is slower than this is sick."""

SENDS_IN_FLIGHT_MAX: Final = 64
"""Keyless messages under way at once; their syncs are shared by each broker."""

LINES_A_SEND_MAX: Final = 100
"""Lines with one key that travel in one send."""

PEEK_BYTES_MAX: Final = 16 << 20
"""One reply to a peek; what is left is asked for again."""

PORT_LOWEST: Final = 15_000
PORT_HIGHEST: Final = 32_000
"""Of a broker: below Linux' usual range for outgoing connections, 32768 to 60999."""

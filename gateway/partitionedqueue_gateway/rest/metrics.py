"""`/metrics` in Prometheus' text format, version 0.0.4.

Series a queue: 6 states, 6 figures, and 2 for each partition; nothing grows with messages, sessions or clients.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from aiohttp import web

from partitionedqueue.broker.counts import Counts
from partitionedqueue.broker.replies import Totals
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.health import QueueReport
from partitionedqueue_gateway.entities.totals import Standings

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
STATES: Final = ("active", "dead_letter", "scheduled", "deferred", "transfer", "transfer_dead_letter")
_Sample = tuple[Mapping[str, str], float]


class Metrics:
    """Figures of all queues, and of this gateway."""

    def __init__(self, catalog: Catalog, standings: Standings, answered: Mapping[tuple[str, int], int]) -> None:
        self._catalog = catalog
        self._standings = standings
        self._answered = answered

    def routes(self) -> list[web.RouteDef]:
        """What is answered here."""
        return [web.get("/metrics", self.metrics)]

    async def metrics(self, _request: web.Request) -> web.Response:
        """All of them."""
        reports = await self._standings.of_all(self._catalog.queues.values())
        age_s = self._catalog.age_s(asyncio.get_running_loop().time())
        lines = [*of_queues(reports), *of_gateway(self._catalog, age_s, self._answered)]
        return web.Response(text="\n".join(lines) + "\n", headers={"Content-Type": CONTENT_TYPE})


def of_queues(reports: Iterable[QueueReport]) -> Iterator[str]:
    """The lines on queues. A queue that was not heard out has none but how many partitions it should have."""
    every = [(_names(one), one) for one in reports]
    known = [(names, one, one.counts) for names, one in every if one.known]
    yield from _family(
        "pq_messages",
        "Messages that a queue holds, by state; of the partitions that serve.",
        (({**names, "state": state}, getattr(counts, state)) for names, _, counts in known for state in STATES),
    )
    yield from _family(
        "pq_queue_partitions",
        "Partitions that a queue has.",
        ((names, one.queue.spec.partitions) for names, one in every),
    )
    yield from _family(
        "pq_queue_partitions_up",
        "Partitions of a queue that serve.",
        ((names, len(one.totals)) for names, one, _ in known),
    )
    yield from _family(
        "pq_queue_size_bytes", "What the messages of a queue take.", ((names, c.size_in_bytes) for names, _, c in known)
    )
    yield from _family(
        "pq_queue_max_size_bytes",
        "What a queue may take.",
        ((names, one.queue.spec.max_size_in_megabytes * 2**20) for names, one in every),
    )
    yield from _family(
        "pq_queue_sessions",
        "Sessions of a queue that may be accepted or are held.",
        ((names, c.sessions) for names, one, c in known if one.queue.spec.requires_session),
    )
    yield from _family(
        "pq_queue_oldest_message_age_seconds",
        "How long the oldest message of a queue has been there; 0 where there is none.",
        ((names, max(one.oldest_ms or 0, 0) / 1000) for names, one, _ in known),
    )
    yield from _of_partitions([(names, one) for names, one, _ in known])


def _of_partitions(known: Sequence[tuple[Mapping[str, str], QueueReport]]) -> Iterator[str]:
    each = [
        ({**names, "partition": str(number)}, partition.found)
        for names, one in known
        for number, partition in enumerate(one.partitions)
    ]
    yield from _family(
        "pq_partition_up",
        "Whether a partition serves.",
        ((names, isinstance(found, Totals)) for names, found in each),
    )
    yield from _family(
        "pq_partition_messages",
        "Messages that a partition holds, in whatever state.",
        ((names, Counts.of(found).messages) for names, found in each if isinstance(found, Totals)),
    )


def of_gateway(catalog: Catalog, age_s: float, answered: Mapping[tuple[str, int], int]) -> Iterator[str]:
    """The lines on the gateway itself."""
    yield from _family("pq_gateway_synced", "Whether the gateway knows the queues.", [({}, catalog.synced)])
    yield from _family("pq_gateway_queues", "Queues that the gateway knows.", [({}, len(catalog.queues))])
    yield from _family(
        "pq_gateway_unreadable_queues", "Queues that this version does not understand.", [({}, len(catalog.unreadable))]
    )
    yield from _family(
        "pq_gateway_catalog_age_seconds", "Since the source of the queues was last heard.", [({}, round(age_s, 3))]
    )
    yield from _family(
        "pq_gateway_http_requests_total",
        "Requests answered.",
        (({"route": route, "status": str(status)}, count) for (route, status), count in sorted(answered.items())),
        kind="counter",
    )


def _family(name: str, says: str, samples: Iterable[_Sample], *, kind: str = "gauge") -> Iterator[str]:
    yield f"# HELP {name} {says}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        written = ",".join(f'{label}="{_escaped(words)}"' for label, words in labels.items())
        yield f"{name}{{{written}}} {float(value):.17g}" if written else f"{name} {float(value):.17g}"


def _names(report: QueueReport) -> dict[str, str]:
    return {"namespace": report.queue.name.namespace, "queue": report.queue.name.name}


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

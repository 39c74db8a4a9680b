"""What do many queues cost the operator and the API server, and does it stay in proportion?

A real API server, with its controllers and scheduler; the pods are simulated (kwok) and their brokers answer that they
are empty. Queues of 16 partitions are made all at once, first some and then many: how long until each says Ready, how
many requests the operator makes a queue, how large it grows, and what it does when nothing happens any more. Then it is
started anew over all of them.

The operator is a process of its own, so that its memory and processor time are its own. The time until all are Ready is
mostly that of the StatefulSet controller and the scheduler.
"""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import os  # noqa: E402 -- what comes from here on is found by the line above

from benchmarks.measuring.rounds import conclude, parser, say, table  # noqa: E402
from benchmarks.measuring.simulated_brokers import brokers  # noqa: E402

from harness.cluster import own, simulated  # noqa: E402
from harness.cluster.own import OwnCluster  # noqa: E402
from harness.operator_process import Installation, OperatorProcess  # noqa: E402
from partitionedqueue.model.placement import volume_claim_name  # noqa: E402
from partitionedqueue.model.queue_spec import API_VERSION, KIND  # noqa: E402

PARTITIONS = 16
SIZES, SIZES_QUICK = (100, 500), (5, 10)
IN_A_NAMESPACE = 50
NODES = 20
CLASS = "simulated"
REST_S, REST_QUICK_S = 60.0, 20.0
READY_S_MAX = 3_600.0
PAGE = 10
TICKS = os.sysconf("SC_CLK_TCK")


class Figures(NamedTuple):
    """Of one number of queues; requests, writes and seconds are the operator's."""

    queues: int
    ready_s: float
    requests_a_queue: float
    processor_ms_a_queue: float
    memory_mb: float
    writes_at_rest: int
    requests_at_rest_a_minute: float
    processor_share_at_rest: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each size, then a start over all of them."""
    asked = parser(__doc__.partition("\n")[0])
    asked.add_argument("--queues", type=int, nargs="+", help=f"how many, rising (default {SIZES})")
    given = asked.parse_args(arguments)
    sizes: Sequence[int] = given.queues or (SIZES_QUICK if given.quick else SIZES)
    rest_s = REST_QUICK_S if given.quick else REST_S
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster, keeper = own.create(1, outlives=False)
        stack.callback(keeper.end)
        stack.enter_context(cluster.simulated_nodes(NODES))
        stack.enter_context(brokers(cluster.slot.simulated))
        installation = Installation(cluster, folder)
        _storage_class(cluster)
        operator = stack.enter_context(OperatorProcess(installation, "simulated/broker:1")).leading()
        found, before = [], 0
        for size in sizes:
            found.append(_measure(cluster, operator, range(before, size), rest_s))
            before = size
        again_s, writes = _start_anew(operator, before, rest_s)
    _show(found)
    first, last = found[0], found[-1]
    ratios = {
        "requests_a_queue_many_to_few": last.requests_a_queue / first.requests_a_queue,
        "processor_a_queue_many_to_few": last.processor_ms_a_queue / first.processor_ms_a_queue,
    }
    return conclude(
        "operator_scale", ratios, sizes=[one._asdict() for one in found], start_anew_s=round(again_s, 1),
        writes_after_start=writes,
    )  # fmt: skip


def _measure(cluster: OwnCluster, operator: OperatorProcess, numbers: range, rest_s: float) -> Figures:
    say(f"making queues {numbers.start} to {numbers.stop - 1}, of {PARTITIONS} partitions each")
    for number in numbers:
        if number % IN_A_NAMESPACE == 0:
            cluster.kubectl("create", "namespace", _namespace(number))
    for start in range(numbers.start, numbers.stop, PAGE):
        page = range(start, min(start + PAGE, numbers.stop))
        _create(cluster, [_volume(number, n) for number in page for n in range(PARTITIONS)])
    requests, used_s, begun = _requests(operator), _processor_s(operator), time.monotonic()
    for start in range(numbers.start, numbers.stop, PAGE):
        _create(cluster, [_queue(number) for number in range(start, min(start + PAGE, numbers.stop))])
    _await_ready(operator, numbers.stop)
    ready_s = time.monotonic() - begun
    requests, used_s = _requests(operator) - requests, _processor_s(operator) - used_s
    say(f"{numbers.stop} queues are ready, the last {len(numbers)} after {ready_s:.0f} s; {rest_s:.0f} s of rest")
    time.sleep(rest_s / 2)  # the last counts are written
    writes, at_rest, rest_used_s = sum(operator.writes().values()), _requests(operator), _processor_s(operator)
    time.sleep(rest_s)
    return Figures(
        queues=numbers.stop,
        ready_s=round(ready_s, 1),
        requests_a_queue=round(requests / len(numbers), 1),
        processor_ms_a_queue=round(1000 * used_s / len(numbers), 1),
        memory_mb=round(_memory_mb(operator), 1),
        writes_at_rest=sum(operator.writes().values()) - writes,
        requests_at_rest_a_minute=round((_requests(operator) - at_rest) * 60 / rest_s, 1),
        processor_share_at_rest=round((_processor_s(operator) - rest_used_s) / rest_s, 3),
    )


def _start_anew(operator: OperatorProcess, queues: int, rest_s: float) -> tuple[float, int]:
    """Seconds until a new process leads and finds all as it should be, and its writes in that time and after."""
    say(f"starting the operator anew over {queues} queues")
    operator.end()
    begun = time.monotonic()
    operator.start()
    operator.leading()
    _await_ready(operator, queues)
    again_s = time.monotonic() - begun
    time.sleep(rest_s)
    return again_s, sum(operator.writes().values())


def _await_ready(operator: OperatorProcess, queues: int) -> None:
    """Wait until so many say Ready and nothing is waiting to be looked at."""
    deadline = time.monotonic() + READY_S_MAX
    told = time.monotonic()
    while True:
        ready = operator.metric("pq_operator_queues_ready")
        if ready == queues and operator.metric("pq_operator_queue_depth") == 0:
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"only {ready:.0f} of {queues} queues are ready after {READY_S_MAX:.0f} s")
        if time.monotonic() - told > 15:
            told = time.monotonic()
            say(f"{max(ready, 0):.0f} of {queues} are ready")
        time.sleep(0.25)


def _show(found: Sequence[Figures]) -> None:
    names = (
        "queues",
        "ready s",
        "requests/queue",
        "cpu ms/queue",
        "memory MB",
        "writes at rest",
        "requests/min",
        "cpu",
    )
    table(names, [[str(value) for value in one] for one in found])


# ---------------------------------------------------------------- what is made


def _namespace(number: int) -> str:
    return f"scale-{number // IN_A_NAMESPACE}"


def _name(number: int) -> str:
    return f"queue-{number}"


def _queue(number: int) -> dict[str, Any]:
    pods = {"nodeSelector": simulated.SELECTOR, "tolerations": [simulated.TOLERATION]}
    spec = {"enablePartitioning": True, "broker": pods, "storage": {"storageClassName": CLASS}}
    metadata = {"name": _name(number), "namespace": _namespace(number)}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _volume(number: int, partition: int) -> dict[str, Any]:
    """Made for its claim beforehand, so that nobody has to provide one."""
    claim = {"namespace": _namespace(number), "name": volume_claim_name(_name(number), partition)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}-{partition}"},
        "spec": {
            "capacity": {"storage": "4Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "claimRef": claim,
            "hostPath": {"path": "/nowhere"},
        },
    }


def _storage_class(cluster: OwnCluster) -> None:
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS}}
    _create(cluster, [{**made, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"}])


def _create(cluster: OwnCluster, manifests: Sequence[dict[str, Any]]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    cluster.kubectl("create", "-f", "-", input=json.dumps(listed), seconds=600)


# ---------------------------------------------------------------- the operator's own figures


def _requests(operator: OperatorProcess) -> float:
    return operator.metric("pq_operator_api_requests_total")


def _processor_s(operator: OperatorProcess) -> float:
    fields = Path(f"/proc/{operator.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _memory_mb(operator: OperatorProcess) -> float:
    lines = Path(f"/proc/{operator.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())

"""A job that loses an executor, a broker and its driver, while somebody else receives from the same queue.

What counts is what has been committed: each message is in it once, or was completed by the other receiver, never both.
PQ_SPARK_MESSAGES=2000000 is the run that was asked for; the suite has fewer.
"""

import base64
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from azure.servicebus import ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusError

from harness.cluster.own import OwnCluster
from harness.live_queue import LiveQueue
from harness.patience import eventually
from harness.release import Release
from partitionedqueue.model.placement import pod_name, secret_name

ROOT: Final = Path(__file__).parents[2]
MANIFESTS: Final = ROOT / "spark-on-k8s/manifests"
JOB: Final = Path(__file__).with_name("spark_ledger.py")
QUEUE: Final = "flights"  # what manifests/sender.yaml sends to
PARTITIONS: Final = 16
MESSAGES: Final = int(os.environ.get("PQ_SPARK_MESSAGES", "100000"))
BATCH: Final = MESSAGES // 10
BATCHES_BETWEEN: Final = 1
STEP_SECONDS: Final = 900  # two drivers start, on a machine that may be busy with much else
SEND_SECONDS: Final = 1200
DRAIN_SECONDS: Final = 1500
LEDGER: Final = f"""
import json, pathlib, sys, numpy, pyarrow.parquet
told = json.load(sys.stdin)
log = pathlib.Path("/work/ledger/out/_spark_metadata")
lines = [line for file in log.glob("[0-9]*") for line in file.read_text().splitlines()[1:]]
files = sorted({{json.loads(line)["path"].removeprefix("file://") for line in lines}})
tables = [pyarrow.parquet.read_table(file, columns=["number", "partition"]) for file in files]
numbers = numpy.concatenate([table["number"].to_numpy() for table in tables])
partitions = set(numpy.concatenate([table["partition"].to_numpy() for table in tables]).tolist())
counts = numpy.bincount(numbers, minlength={MESSAGES})
taken = numpy.bincount(numpy.array(told["taken"], dtype=int), minlength={MESSAGES})
missing = numpy.flatnonzero(counts + taken == 0).tolist()
print(json.dumps(dict(rows=len(numbers), files=len(files), partitions=len(partitions), taken=int(taken.sum()),
    twice=int((counts + taken > 1).sum()), missing=len(missing), lost=len(set(missing) - set(told["unsure"])))))
"""

pytestmark = pytest.mark.timeout(SEND_SECONDS + DRAIN_SECONDS + 4 * STEP_SECONDS, func_only=True)


class Competitor(threading.Thread):
    """Azure's SDK at the gateway, receiving and completing messages of the same queue until it is told to stop."""

    def __init__(self, connection_string: str, queue: str) -> None:
        super().__init__(daemon=True)
        self._connection_string, self._queue = connection_string, queue
        self._stopping = threading.Event()
        self.taken: list[int] = []
        self.unsure: set[int] = set()  # nobody can say whether their completion was carried out

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with (
                    ServiceBusClient.from_connection_string(self._connection_string) as client,
                    client.get_queue_receiver(self._queue) as receiver,
                ):
                    while not self._stopping.is_set():
                        for message in receiver.receive_messages(50, max_wait_time=2):
                            self._complete(receiver, message)
                        self._stopping.wait(0.1)
            except ServiceBusError:
                self._stopping.wait(1)

    def _complete(self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> None:
        number = int(str(message))
        try:
            receiver.complete_message(message)
            self.taken.append(number)
        except ServiceBusError:
            self.unsure.add(number)

    def stop(self) -> None:
        self._stopping.set()
        self.join(60)
        assert not self.is_alive()


class Submitted:
    """A job that reads a queue in cluster mode, begun as often as asked, always from the same checkpoint."""

    def __init__(self, queue: LiveQueue) -> None:
        self._queue = queue
        self._runs = 0
        self._exec = ("exec", "-i", "sender", "--")
        queue.kubectl(
            *self._exec, "sh", "-c", "mkdir -p /work/ledger && cat > /work/ledger/job.py", input=JOB.read_text()
        )

    def start(self) -> None:
        """As manifests/flights.yaml submits its job; returns when its driver runs."""
        self._runs += 1
        job = yaml.safe_load((MANIFESTS / "flights.yaml").read_text())
        job["metadata"]["name"] = self._name
        (container,) = job["spec"]["template"]["spec"]["containers"]
        args: list[str] = container["args"]
        settings = args[: next(n for n, arg in enumerate(args) if arg.startswith("local:"))]
        container["args"] = [
            *(f"--name={self._name}" if arg.startswith("--name=") else arg for arg in settings),
            "local:///work/ledger/job.py", QUEUE, self._queue.namespace, "/work/ledger", str(BATCH),
        ]  # fmt: skip
        assert f"{secret_name(QUEUE)}:spark-password" in " ".join(settings)
        self._queue.kubectl("apply", "-f", "-", input=json.dumps(job))
        eventually(lambda: self.pods("driver"), "the driver has not started", STEP_SECONDS)

    @property
    def _name(self) -> str:
        return f"ledger-{self._runs}"

    def pods(self, role: str) -> list[str]:
        """The names of the newest run's pods that run."""
        listed = self._queue.kubectl("get", "pods", "-l", f"spark-role={role}", "-o", "json")
        return [
            pod["metadata"]["name"]
            for pod in json.loads(listed)["items"]
            if pod["status"]["phase"] == "Running"
            and "deletionTimestamp" not in pod["metadata"]
            and (role == "executor" or pod["metadata"]["labels"]["spark-app-name"] == self._name)
        ]

    def kill(self, pod: str) -> None:
        self._queue.kubectl("delete", "pod", pod, "--force", "--grace-period=0", "--wait=false")

    def committed(self) -> int:
        """How many batches are in the output's log."""
        names = "ls /work/ledger/out/_spark_metadata 2>/dev/null | sed 's/[.].*//' | sort -n | tail -n 1"
        return 1 + int(self._queue.kubectl(*self._exec, "sh", "-c", names).strip() or -1)

    def await_batches(self, more: int) -> None:
        """Until so many more are committed."""
        wanted = self.committed() + more

        def there() -> bool:
            assert self.pods("driver"), f"the driver has ended:\n{self.log()}"
            return self.committed() >= wanted

        eventually(there, f"batch {wanted} has not been committed", STEP_SECONDS)

    def log(self) -> str:
        return self._queue.kubectl("logs", "-l", f"spark-role=driver,spark-app-name={self._name}", "--tail=80")

    def ledger(self, competitor: Competitor) -> dict[str, Any]:
        """What became of the messages, by the output's log and by what the competitor says."""
        told = json.dumps({"taken": competitor.taken, "unsure": sorted(competitor.unsure)})
        return dict(json.loads(self._queue.kubectl(*self._exec, "python", "-c", LEDGER, input=told)))


class Steps:
    """What happens when: for whoever reads the run."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def tell(self, words: str) -> None:
        print(f"{time.monotonic() - self._since:5.0f} s: {words}", file=sys.stderr, flush=True)  # noqa: T201 -- see above


@pytest.fixture
def job(flights: LiveQueue) -> Iterator[Submitted]:
    yield Submitted(flights)
    flights.kubectl("delete", "pods", "-l", "spark-role=driver")  # asked to end, it stops its query in good order


@pytest.fixture
def competitor(own_cluster: OwnCluster, release: Release, flights: LiveQueue) -> Competitor:
    get = ("get", "-n", release.namespace, "-o", "json")
    service = json.loads(own_cluster.kubectl(*get, "service", f"{release.name}-gateway"))
    policies = LiveQueue(own_cluster, release.namespace).get("secret", f"{release.name}-gateway-policies")["data"]
    policy = yaml.safe_load(base64.b64decode(policies["root.yaml"]))
    endpoint = f"Endpoint=sb://{service['spec']['clusterIP']}:5672;SharedAccessKeyName={policy['name']}"
    key = f"SharedAccessKey={policy['primaryKey']};UseDevelopmentEmulator=true"
    return Competitor(f"{endpoint};{key}", f"{flights.namespace}/{flights.name}")


def test_every_message_is_committed_once_whatever_is_killed_and_whoever_else_receives(
    flights: LiveQueue, job: Submitted, competitor: Competitor
) -> None:
    steps = Steps()
    send = f"seq 0 {MESSAGES - 1} | python /opt/partitionedqueue/jobs/send_lines.py --queue {QUEUE}"
    exec_in_sender = ("-n", flights.namespace, "exec", "sender", "--", "sh", "-c")
    sent = flights.cluster.kubectl(*exec_in_sender, send, seconds=SEND_SECONDS)
    assert sent == f"Sent {MESSAGES} messages to queue {QUEUE}\n"
    steps.tell(sent.strip())

    job.start()
    job.await_batches(1)
    competitor.start()
    job.await_batches(BATCHES_BETWEEN)
    job.kill(job.pods("executor")[0])
    steps.tell(f"an executor is killed after batch {job.committed()}")
    job.await_batches(BATCHES_BETWEEN)
    job.kill(pod_name(QUEUE, 5))
    steps.tell(f"a broker is killed after batch {job.committed()}")
    job.await_batches(BATCHES_BETWEEN)
    job.kill(job.pods("driver")[0])
    steps.tell(f"the driver is killed after batch {job.committed()}")
    job.start()
    job.await_batches(BATCHES_BETWEEN)
    steps.tell("another driver goes on")

    def empty() -> bool:
        assert job.pods("driver"), f"the driver has ended:\n{job.log()}"
        return flights.status.get("messages") == 0

    eventually(empty, "the queue has not become empty", DRAIN_SECONDS)
    competitor.stop()
    ledger = job.ledger(competitor)
    steps.tell(f"{ledger}, and {len(competitor.unsure)} completions without an answer")
    assert (ledger["lost"], ledger["twice"], ledger["partitions"]) == (0, 0, PARTITIONS)
    assert competitor.taken
    assert ledger["rows"] + ledger["taken"] + ledger["missing"] == MESSAGES

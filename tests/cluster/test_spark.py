"""The flights on a cluster: sent into 16 partitions, read by `spark-submit --deploy-mode cluster`, and by pandas.

There is no gateway meanwhile: the job reads the brokers themselves.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from demo import figures, flights_data
from harness.live_queue import LiveQueue
from harness.patience import eventually
from harness.release import Release

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "spark-on-k8s/manifests"
JOBS = "/opt/partitionedqueue/jobs"
FLIGHTS = 336_776
JOB_SECONDS = 420
SHOW_RESULTS = """
import json, pandas
for name in ("by_carrier", "by_origin_hour"):
    rows = pandas.read_parquet(f"/work/flights/out/{name}").to_dict(orient="records")
    print(json.dumps(rows, default=lambda number: number.item()))  # every digit, which to_json leaves out
"""

pytestmark = pytest.mark.timeout(900, func_only=True)


@contextmanager
def no_gateway(release: Release) -> Iterator[None]:
    """Scaled to zero, and back."""
    deployment = ("-n", release.namespace, f"deployment/{release.name}-gateway")
    had = len(release.pods("gateway"))
    assert had
    release.cluster.kubectl("scale", "--replicas=0", *deployment)
    eventually(lambda: not release.pods("gateway"), "the gateways have not gone", 90)
    try:
        yield
    finally:
        release.cluster.kubectl("scale", f"--replicas={had}", *deployment)
        release.cluster.kubectl("rollout", "status", *deployment, "--timeout=100s")


def submitted(queue: LiveQueue) -> str:
    """What the driver printed, once the job has ended well."""
    queue.kubectl("apply", "-f", str(MANIFESTS / "flights.yaml"))

    def ended() -> str | None:
        status = queue.get("job", "flights").get("status", {})
        return "succeeded" if status.get("succeeded") else "failed" if status.get("failed") else None

    ending = eventually(ended, "the job has not ended", JOB_SECONDS)
    (driver,) = json.loads(queue.kubectl("get", "pods", "-l", "spark-role=driver", "-o", "json"))["items"]
    log = queue.kubectl("logs", driver["metadata"]["name"], "--tail=-1")
    assert (ending, driver["status"]["phase"]) == ("succeeded", "Succeeded"), log[-8000:]
    return log


def test_the_job_reads_every_partition_and_gives_the_figures_that_pandas_gives(
    flights: LiveQueue, release: Release
) -> None:
    file = flights_data.read_flights()
    lines = file.to_json(orient="records", lines=True)
    send = ("exec", "-i", "sender", "--", "python", f"{JOBS}/send_lines.py", "--queue=flights", "--key=tailnum")
    sent = flights.cluster.kubectl("-n", flights.namespace, *send, input=lines, seconds=400)
    assert sent == f"Sent {FLIGHTS} messages to queue flights\n"

    since = time.monotonic()
    with no_gateway(release):
        log = submitted(flights)
    print(f"the job took {time.monotonic() - since:.0f} s", file=sys.stderr)  # noqa: T201 -- for whoever reads the run
    batches = [json.loads(line) for line in log.splitlines() if line.startswith('{"batch"')]
    assert sum(batch["rows"] for batch in batches) == FLIGHTS
    eventually(lambda: flights.status.get("messages") == 0, "the queue has not become empty", 60)

    shown = flights.kubectl("exec", "sender", "--", "python", "-c", SHOW_RESULTS).splitlines()
    carriers, origins = (pd.DataFrame(json.loads(line)) for line in shown)
    ours = figures.Figures(figures.read_table(carriers, ["carrier"]), figures.read_table(origins, ["origin", "hour"]))
    assert figures.differences(ours, figures.figures_of(file)) == []
    assert ours.flights == FLIGHTS

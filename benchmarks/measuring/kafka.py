"""A Kafka broker for the length of a measurement, and Spark's source for it; both from Maven, in the cache folder.

drivers/kafka/pom.xml has the newest versions that were there: Spark's source for Kafka is published after Spark itself,
and this one runs on a Spark that is a release newer.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring.peers import DRIVERS, Peer, PeerMissing, cache_folder, run, wait_for
from benchmarks.measuring.rounds import say
from benchmarks.measuring.servers import free_ports, running, temporary_folder

POM = DRIVERS / "kafka" / "pom.xml"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
OF_SPARK = ("spark-*", "kafka-clients-*", "commons-pool2-*")
HEAP = "-Xmx1g"


def jars() -> Path:
    """The folder with all that the pom names, filled the first time. Raises PeerMissing."""
    folder = cache_folder() / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:16]}"
    if not folder.exists():
        if not shutil.which("mvn") or not shutil.which("java"):
            raise PeerMissing("Kafka comes from Maven, and there is no mvn, or no java, on this machine")
        say("fetching Kafka and Spark's source for it; this is done once")
        with tempfile.TemporaryDirectory(dir=cache_folder()) as name:
            made = Path(name) / "jars"
            run("mvn", "-q", "-B", "-f", str(POM), COPY, "-DincludeScope=runtime", f"-DoutputDirectory={made}")
            made.rename(folder)
    return folder


def jars_of_spark() -> list[Path]:
    """What Spark needs to read from Kafka. Raises PeerMissing."""
    folder = jars()
    return [jar for pattern in OF_SPARK for jar in sorted(folder.glob(pattern))]


def make_topic(peer: Peer, topic: str, partitions: int) -> None:
    """Ask for a topic, rather than let the first writes bring it about: those may wait for two minutes."""
    command = ("java", "-cp", f"{jars()}/*", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", peer.address)
    run(*command, "--create", "--topic", topic, "--partitions", str(partitions))


@contextmanager
def kafka() -> Iterator[Peer]:
    """One broker, its own controller."""
    port, controller_port = free_ports(2)
    java = ["java", HEAP, "-cp", f"{jars()}/*"]
    with temporary_folder() as folder:
        settings, log = folder / "server.properties", folder / "log"
        settings.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller_port}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={folder}/data\n"
            "offsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n",
            encoding="utf-8",
        )
        identity = run(*java, "kafka.tools.StorageTool", "random-uuid").split()[-1]
        run(*java, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings))
        with running([*java, "kafka.Kafka", str(settings)], log) as group:
            wait_for(port, "Kafka", log)
            yield Peer(f"127.0.0.1:{port}", group)

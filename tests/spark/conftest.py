import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.redis_servers import running_brokers
from partitionedqueue_spark import register
from spark.brokers import Brokers


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with running_brokers(tmp_path / "brokers", 3, fsync="everysec") as servers:
        yield Brokers(servers)


@pytest.fixture
def jobs_end_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs that run in this process end the session when they end, and listen to SIGTERM: not so here."""
    monkeypatch.setattr(SparkSession, "stop", lambda _self: None)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)

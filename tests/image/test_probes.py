"""ready.sh and live.sh: what the kubelet asks a broker's pod."""

import os
import signal
import subprocess
from pathlib import Path

from harness.servers import Server
from harness.start_script import IMAGE, Started, started
from partitionedqueue.broker.blocking import BlockingBroker


def asked(script: str, broker: Started, server: Server, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(IMAGE / script)],
        env={
            **os.environ,
            "PQ_DIR": str(broker.folder),
            "PQ_PORT": str(broker.port),
            "PQ_SERVER": server.path,
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_a_broker_is_ready_once_its_port_is_open(folder: Path, library: Path, server: Server) -> None:
    with started(folder, library, server=server.path) as broker:
        broker.wait_until_ready()
        done = asked("ready.sh", broker, server)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert asked("live.sh", broker, server).returncode == 0
        done = asked("ready.sh", broker, server, PQ_PORT="1")
        assert (done.returncode, done.stdout) == (1, "not ready: its port is not open yet\n")


def test_probes_know_the_password_by_the_environment(folder: Path, library: Path, server: Server) -> None:
    own = {"REDISCLI_AUTH": "secret"}
    with started(folder, library, "--requirepass", "secret", server=server.path, settings=own) as broker:
        broker.wait_until_ready()
        assert asked("ready.sh", broker, server, **own).returncode == 0
        assert asked("live.sh", broker, server, **own).returncode == 0
        without = asked("ready.sh", broker, server)
        assert without.returncode == 1
        assert "NOAUTH" in without.stdout
        assert asked("live.sh", broker, server).returncode == 0  # it answers, whatever it says


def test_a_broker_without_the_library_is_not_ready_but_lives(folder: Path, library: Path, server: Server) -> None:
    with started(folder, library, server=server.path) as broker:
        with BlockingBroker(broker.wait_until_ready().address) as client:
            client.raw(("FUNCTION", "FLUSH"))
        done = asked("ready.sh", broker, server)
        assert done.returncode == 1
        assert done.stdout.startswith("not ready: the library is not loaded: ERR Function not found")
        assert asked("live.sh", broker, server).returncode == 0


def test_a_broker_that_keeps_nothing_on_disk_is_not_ready_unless_that_was_asked_for(
    folder: Path, library: Path, server: Server
) -> None:
    with started(folder, library, server=server.path) as broker:
        with BlockingBroker(broker.wait_until_ready().address) as client:
            client.raw(("CONFIG", "SET", "appendonly", "no"))
        assert "not ready: the append-only file cannot be written" in asked("ready.sh", broker, server).stdout
        assert asked("ready.sh", broker, server, PQ_DURABILITY="None").returncode == 0


def test_a_server_that_has_gone_is_neither_ready_nor_alive(folder: Path, library: Path, server: Server) -> None:
    with started(folder, library, server=server.path) as broker:
        broker.wait_until_ready()
        broker.end()
        done = asked("ready.sh", broker, server)
        assert done.returncode == 1
        assert done.stdout.startswith("not ready: it reads its files, or does not answer: Could not connect")
        assert asked("live.sh", broker, server).returncode != 0


def test_a_server_that_hangs_answers_no_probe_until_its_time_is_over(
    folder: Path, library: Path, server: Server
) -> None:
    with started(folder, library, server=server.path) as broker:
        pid = broker.wait_until_ready().server_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            probe = subprocess.Popen(
                [str(IMAGE / "live.sh")], env={**os.environ, "PQ_DIR": str(folder), "PQ_SERVER": server.path}
            )
            try:
                probe.wait(1.0)
                raise AssertionError("a hanging server seemed alive")
            except subprocess.TimeoutExpired:
                pass
            finally:
                probe.kill()
                probe.wait()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert asked("live.sh", broker, server).returncode == 0

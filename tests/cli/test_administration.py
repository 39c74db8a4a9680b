"""Queues that are made over the embedded namespace's administration API: they start, stay, change and go."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.atom_documents import Answer, ask, entry
from harness.pq_command import Pq, is_alive, manifest, wait_until, write
from harness.sas_tokens import sas_token
from partitionedqueue.model.entity_name import object_name

PARTITIONED = {"EnablePartitioning": "true", "MaxSizeInMegabytes": 1024}


class Administrator:
    """Whoever has the connection string."""

    def __init__(self, pq: Pq) -> None:
        said = dict(part.split("=", 1) for part in pq.done("connection-string").strip().split(";"))
        self._port = int(said["Endpoint"].rpartition(":")[2])
        self._key = said["SharedAccessKey"]

    def ask(self, method: str, path: str, body: str | None = None, **more: str) -> Answer:
        token = sas_token("https://127.0.0.1", expires_s=time.time() + 60, key=self._key)
        return ask(self._port, method, path, body, token=token, **more)

    def make(self, name: str, **values: object) -> Answer:
        return self.ask("PUT", f"/{name}", entry(values=values))


def test_a_queue_that_was_made_is_there_after_a_restart_as_it_was_changed_and_goes_with_its_messages(
    pq: Pq, small: Path
) -> None:
    pq.up(small)
    administrator = Administrator(pq)
    name, inside = "My_Orders", object_name("My_Orders")
    made = administrator.make(name, **PARTITIONED)
    assert made.status == 201, made.body
    assert administrator.make(name.lower()).status == 409
    assert made.values["MaxSizeInMegabytes"] == "16384"
    assert pq.done("send", inside, "--body", "hello").strip()
    changed = administrator.ask("PUT", f"/{name}", entry(values={"MaxDeliveryCount": 3}), If_Match="*")
    assert (changed.status, changed.values["MaxDeliveryCount"]) == (200, "3")
    assert changed.values["UpdatedAt"] > changed.values["CreatedAt"]
    pq.done("down")

    pq.up(small)
    administrator = Administrator(pq)
    found = administrator.ask("GET", f"/{name}").values
    assert (found["MaxDeliveryCount"], found["MessageCount"]) == ("3", "1")
    assert found["CreatedAt"] == made.values["CreatedAt"]
    assert "Already up" in pq.done("up", "-f", small)

    pids = pq.pids(inside)
    assert len(pids) == 16
    assert administrator.ask("DELETE", f"/{name}").status == 200
    assert not any(map(is_alive, pids))
    assert set(pq.record()["queues"]) == {"letters"}
    assert {path.name for path in pq.data.iterdir()} == {"_gateway", "letters", "lock", "namespace.json"}
    assert administrator.ask("DELETE", f"/{name}").status == 404
    again = administrator.make(name, EnablePartitioning="true")
    assert (again.status, again.values["MessageCount"]) == (201, "0")


def test_a_changed_queue_tells_its_brokers(pq: Pq, small: Path) -> None:
    pq.up(small)
    administrator = Administrator(pq)
    disabled = administrator.ask("PUT", "/letters", entry(values={"Status": "SendDisabled"}), If_Match="*")
    assert disabled.values["Status"] == "SendDisabled"
    assert pq("send", "letters", "--body", "no").returncode == 1
    assert administrator.ask("PUT", "/letters", entry(), If_Match="*").values["Status"] == "Active"
    assert pq("send", "letters", "--body", "yes").returncode == 0


def test_what_cannot_be_made_is_refused_and_leaves_nothing(pq: Pq, small: Path) -> None:
    pq.up(small)
    administrator = Administrator(pq)
    elsewhere = administrator.make("team-a/orders")
    assert (elsewhere.status, "there is only default here" in elsewhere.body) == (400, True)
    (pq.data / "orders").mkdir()
    occupied = administrator.make("orders")
    assert (occupied.status, "something called orders that is no queue's" in occupied.body) == (400, True)
    assert administrator.make("lock").status == 400
    grown = administrator.ask("PUT", "/letters", entry(values={"MaxSizeInMegabytes": 2048}), If_Match="*")
    assert (grown.status, "cannot become" in grown.body) == (400, True)
    assert list((pq.data / "_gateway" / "requests").iterdir()) == []
    assert set(pq.record()["queues"]) == {"letters"}
    for answer in (elsewhere, occupied, grown):
        assert str(pq.data) not in answer.body
    assert administrator.make("default/eu/Orders").values["Status"] == "Active"
    assert administrator.ask("GET", "/$Resources/queues").titles == ["default/eu/Orders", "letters"]


def test_a_record_that_cannot_be_written_leaves_nothing_half_done(pq: Pq, small: Path) -> None:
    pq.up(small)
    administrator = Administrator(pq)
    assert administrator.make("kept").status == 201
    in_the_way = pq.data / "namespace.json.new"
    in_the_way.mkdir()
    for answer in (
        administrator.make("new"),
        administrator.ask("DELETE", "/kept"),
        administrator.ask("PUT", "/kept", entry(values={"MaxDeliveryCount": 3}), If_Match="*"),
    ):
        assert (answer.status, str(pq.data) in answer.body) == (503, False), answer.body
    in_the_way.rmdir()
    assert administrator.ask("GET", "/new").titles == []
    assert {path.name for path in pq.data.iterdir()} == {"_gateway", "letters", "kept", "lock", "namespace.json"}
    found = administrator.ask("GET", "/kept").values
    assert (found["MaxDeliveryCount"], found["EntityAvailabilityStatus"]) == ("10", "Available")
    assert administrator.make("new").status == 201
    assert administrator.ask("DELETE", "/kept").status == 200
    assert set(pq.record()["queues"]) == {"letters", "new"}


def test_what_a_supervisor_had_begun_to_delete_goes_with_the_next(pq: Pq, small: Path) -> None:
    pq.up(small)
    assert Administrator(pq).make("going").status == 201
    pq.done("down")
    record = pq.record()
    record["queues"]["going"]["deleting"] = True
    (pq.data / "namespace.json").write_text(json.dumps(record))
    pq.up(small)
    assert not (pq.data / "going").exists()
    assert set(pq.record()["queues"]) == {"letters"}
    assert Administrator(pq).make("going").values["MessageCount"] == "0"


def test_a_supervisor_that_is_killed_while_it_makes_a_queue_leaves_its_name_free(pq: Pq, small: Path) -> None:
    supervisor = pq.up(small)
    administrator = Administrator(pq)
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(administrator.make, "half", **PARTITIONED)
        wait_until((pq.data / "half").exists)
        supervisor.kill()
        supervisor.wait(10)
        assert making.exception(60) is not None or making.result().status == 503
    pq.up(small)
    assert not (pq.data / "half").exists()
    assert Administrator(pq).make("half").status == 201


def test_a_namespace_that_ends_keeps_nobody_waiting_for_a_queue(pq: Pq, small: Path) -> None:
    pq.up(small)
    administrator = Administrator(pq)
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(administrator.make, "half", **PARTITIONED)
        wait_until((pq.data / "half").exists)
        pq.done("down")
        assert making.result(60).status in {201, 503}
    assert (pq.data / "half").exists() == ("half" in pq.record()["queues"])


def test_queues_can_be_made_side_by_side_and_one_of_a_name(pq: Pq, small: Path) -> None:
    pq.up(small)
    administrator = Administrator(pq)
    with ThreadPoolExecutor(8) as pool:
        statuses = [*pool.map(lambda n: administrator.make(f"queue-{n % 4}").status, range(8))]
    assert sorted(statuses) == [201] * 4 + [409] * 4
    wait_until(lambda: set(pq.record()["queues"]) == {"letters", *(f"queue-{n}" for n in range(4))})


def test_a_queue_of_the_file_that_was_deleted_comes_back_with_the_file(pq: Pq, tmp_path: Path) -> None:
    file = write(tmp_path / "two.yaml", manifest("one", partitioned=False), manifest("two", partitioned=False))
    pq.up(file)
    assert Administrator(pq).ask("DELETE", "/two").status == 200
    pq.done("down")
    pq.up(file)
    assert Administrator(pq).ask("GET", "/$Resources/queues").titles == ["one", "two"]


def test_requests_that_make_no_sense_are_answered(pq: Pq, small: Path) -> None:
    pq.up(small)
    folder = pq.data / "_gateway" / "requests"
    nonsense = ["", "[]", "{", '{"name": "x"}', '{"name": "x", "do": "create", "manifest": 1}']
    for number, words in enumerate(nonsense):
        (folder / f"{number}.request").write_text(words)
    answers = [folder / f"{number}.answer" for number in range(len(nonsense))]
    wait_until(lambda: all(answer.exists() for answer in answers), words=pq.said.read_text())
    assert all('"refused"' in answer.read_text() for answer in answers)
    assert pq("status").returncode == 0

"""A message that is made before its entry is durable goes out when it is, or never."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

import pytest

from mam.bus.connection import Connection
from mam.bus.relay import Relay
from mam.bus.settings import Broker
from mam.stores.files.lock import registry_lock
from mam.stores.files.pauses import ring
from mam.stores.files.store import FilesStore
from mam.stores.port import Entry
from tests.bus.mosquitto import Mosquitto, Reader, as_parts, send
from tests.files.conftest import Place
from tests.files.test_foreseeing import half_written

LONG = 60.0
"""Only so that a broken test ends."""

TOPIC = "python/mqtt/jobs/x/events"


@pytest.fixture
def address(broker: Mosquitto) -> Broker:
    return Broker(host="127.0.0.1", port=broker.port)


@pytest.fixture
def reader(broker: Mosquitto) -> Reader:
    return Reader(broker)


class Relaying:
    """A relay that stays, and what it has prepared for."""

    def __init__(self, path: Path, broker: Broker) -> None:
        self.said: list[str] = []
        self.prepared: SimpleQueue[Entry] = SimpleQueue()
        self.waits_behind: SimpleQueue[str] = SimpleQueue()
        self._store = FilesStore(str(path))
        self._relay = Relay(self._store, broker, self.said.append)
        self._store.coming = self._prepare
        self._stopping = Event()
        self._thread = Thread(target=self._relay.run, args=(self._stopping.is_set, self._wait))
        self._thread.start()

    def _prepare(self, entry: Entry) -> None:
        self._relay.prepare(entry)
        self.prepared.put(entry)

    def _wait(self, place: str | None, seconds: float) -> bool:
        if place is None:
            return not self._stopping.wait(min(seconds, 0.01))
        self.waits_behind.put(place)
        return self._store.wait(place, LONG)  # it shall not stir while a writer holds the lock

    def end(self) -> None:
        self._stopping.set()
        ring(self._store.address)
        self._thread.join(LONG)
        self._store.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "jobs")
    yield made
    made.close()


@pytest.fixture
def relaying(place: Place, address: Broker) -> Iterator[Relaying]:
    started = Relaying(place.path, address)
    yield started
    started.end()


def told(reader: Reader, count: int) -> list[tuple[int, str]]:
    payloads = [as_parts(line)[2] for line in reader.take(count)]
    return [(payload["seq"], payload["detail"]) for payload in payloads]


def test_a_message_that_is_held_back_waits_for_its_word(address: Broker, broker: Mosquitto, reader: Reader) -> None:
    with Connection(address, "test", LONG) as connection:
        number = connection.hold(TOPIC, b'"held"', retain=False)
        for _ in range(3):
            connection.turn(0)
        send(broker, TOPIC, b'"other"')
        assert [as_parts(line)[2] for line in reader.take(1)] == ["other"]

        connection.let_go()
        assert [as_parts(line)[2] for line in reader.take(1)] == ["held"]
        while number in connection.unanswered:
            connection.turn(LONG)


def test_a_message_that_is_held_back_goes_with_its_connection(
    address: Broker, broker: Mosquitto, reader: Reader
) -> None:
    with Connection(address, "test", LONG) as connection:
        connection.hold(TOPIC, b'"held"', retain=False)
    with Connection(address, "test", LONG) as connection:
        connection.send(TOPIC, b'"other"', retain=False)
        while connection.unanswered:
            connection.turn(LONG)
    send(broker, TOPIC, b'"last"')

    assert [as_parts(line)[2] for line in reader.take(2)] == ["other", "last"]


def test_what_was_prepared_for_is_sent_once_and_in_order(place: Place, relaying: Relaying, reader: Reader) -> None:
    registry = place.open()
    job = registry.register(prompt="x", agent="codex").job.job_id
    for number in range(1, 21):
        registry.publish(job, event="progress", detail=f"number {number}")
        assert told(reader, 1) == [(number, f"number {number}")]

    assert not relaying.said


def test_what_its_writer_took_back_is_never_sent(place: Place, relaying: Relaying, reader: Reader) -> None:
    registry = place.open()
    job = registry.register(prompt="x", agent="codex").job.job_id
    registry.publish(job, event="progress", detail="one")
    assert told(reader, 1) == [(1, "one")]
    before, relaying.prepared = 1, SimpleQueue()
    while relaying.prepared.empty():
        before = registry.publish(job, event="progress", detail="before").last_seq
        assert told(reader, 1) == [(before, "before")]
    while relaying.waits_behind.get(timeout=LONG) != registry.store.end():
        pass
    relaying.prepared = SimpleQueue()
    with registry_lock(str(place.path)):
        take_back = half_written(place, lambda payload: payload.update(seq=before + 1, detail="nev"))
        relaying.prepared.get(timeout=LONG)
        take_back()
    for detail in ("now", "then"):
        registry.publish(job, event="progress", detail=detail)

    assert told(reader, 2) == [(before + 1, "now"), (before + 2, "then")]
    assert not relaying.said

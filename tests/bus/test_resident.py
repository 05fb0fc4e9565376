"""The relay in a background thread."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mam.bus.background_relay import BackgroundRelay, WorkerRelays
from mam.bus.settings import Broker
from mam.config.settings import Config
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from tests.bus.mosquitto import Mosquitto, Reader, as_parts

pytestmark = pytest.mark.external

QUIET: list[str] = []


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in list(os.environ):
        if name.startswith("MQTT_"):
            monkeypatch.delenv(name)
    return MemoryStore()


def _background_relay(store: MemoryStore, broker: Mosquitto) -> BackgroundRelay:
    return BackgroundRelay(store, Broker(host="127.0.0.1", port=broker.port), QUIET.append)


def test_it_sends_what_it_is_woken_for(store: MemoryStore, broker: Mosquitto) -> None:
    registry = Registry(store)
    reader = Reader(broker)
    background = _background_relay(store, broker)
    background.start()

    job = registry.register(prompt="x", agent="a").job.job_id
    for number in range(1, 4):
        registry.publish(job, event="progress")
        background.wake()
        assert as_parts(reader.take(1)[0])[2]["seq"] == number
    background.stop()

    assert "mam-relay" not in [thread.name for thread in threading.enumerate()]


def test_stopped_at_once_it_still_sends_what_was_stored(store: MemoryStore, broker: Mosquitto) -> None:
    """A worker that runs one short job ends before the connection is open."""
    reader = Reader(broker)
    job = Registry(store).register(prompt="x", agent="a").job.job_id
    Registry(store).complete(job)
    background = _background_relay(store, broker)

    background.start()
    background.stop(30)

    assert as_parts(reader.take(1)[0])[2]["event"] == "completed"


def test_one_relay_sends_and_the_other_takes_over(store: MemoryStore, broker: Mosquitto) -> None:
    registry = Registry(store)
    reader = Reader(broker)
    first, second = _background_relay(store, broker), _background_relay(store, broker)
    first.start()
    job = registry.register(prompt="x", agent="a").job.job_id
    registry.publish(job, event="started")
    first.wake()
    assert as_parts(reader.take(1)[0])[2]["seq"] == 1
    second.start()
    first.stop(30)

    registry.publish(job, event="progress")
    second.wake()
    assert as_parts(reader.take(1)[0])[2]["seq"] == 2
    second.stop(30)


def test_without_a_broker_there_is_no_relay(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    WorkerRelays(store, Config(), said.append).stop()
    assert said == []
    monkeypatch.setenv("MQTT_BROKER", "192.0.2.1")
    WorkerRelays(store, Config(), said.append).stop()
    assert "has no TLS" in said[0]


def test_the_settings_name_the_broker(store: MemoryStore, broker: Mosquitto) -> None:
    reader = Reader(broker)
    config = Config(broker={"host": "127.0.0.1", "port": broker.port})
    Registry(store).complete(Registry(store).register(prompt="x", agent="a").job.job_id)

    WorkerRelays(store, config, QUIET.append).stop(30)

    assert as_parts(reader.take(1)[0])[2]["event"] == "completed"

"""The relay on a database that many hosts share: one position for each broker, for the relays of all hosts."""

from __future__ import annotations

import json
import random
import signal
from typing import TYPE_CHECKING

import pytest

from mam.bus.relay_state import relay_lag
from mam.bus.settings import Broker
from mam.stores.port import Query
from mam.stores.postgres.store import PostgresStore
from tests.bus.following import ended, numbers, relay_name, wait_for_stderr
from tests.bus.mosquitto import Reader
from tests.postgres.pooler import Pooler
from tests.waiting import await_that

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.bus.mosquitto import Mosquitto
    from tests.cli.command import Mam
    from tests.postgres.server import PrivateServer

pytestmark = pytest.mark.external

EVENTS, KILLS = 30, 6


@pytest.fixture
def shared(mam_mqtt: Mam, database: str) -> Mam:
    """With a broker and a database."""
    mam_mqtt.env["MAM_STORE"] = database
    mam_mqtt("init")
    return mam_mqtt


@pytest.fixture
def store(shared: Mam, database: str) -> Iterator[PostgresStore]:
    local_store = PostgresStore(database)
    yield local_store
    local_store.close()


def on_another_host(mam: Mam, folder: Path) -> None:
    """Another host: nothing on its disk is shared with the first one."""
    (folder / "elsewhere").mkdir()
    mam.env["XDG_STATE_HOME"] = mam.env["HOME"] = str(folder / "elsewhere")


def stored(store: PostgresStore) -> set[tuple[str, int]]:
    return {(job.job_id, event["seq"]) for job in store.select(Query()) for event in store.events(job.job_id)}


def wait_until_sent(store: PostgresStore, broker: Mosquitto) -> None:
    address = Broker(host="127.0.0.1", port=broker.port)
    await_that(lambda: not relay_lag(store, address).waiting, "the events do not arrive", longest=120)


@pytest.fixture
def behind_a_pooler(mam_mqtt: Mam, server: PrivateServer) -> Iterator[Mam]:
    """A pool that gives each transaction another connection."""
    server.empty_database()
    pooler = Pooler(server.folder / "relay", server)
    mam_mqtt.env["MAM_STORE"] = pooler.url("transaction")
    mam_mqtt("init")
    yield mam_mqtt
    pooler.stop()


@pytest.mark.parametrize("way", ["shared", "behind_a_pooler"])
def test_an_event_reaches_a_subscriber_through_the_relay(request: pytest.FixtureRequest, way: str) -> None:
    mam: Mam = request.getfixturevalue(way)
    job = mam.register()
    relay = mam.start("relay")
    wait_for_stderr(relay, "sending the events")
    subscriber = mam.start("subscribe", job, "--json", "--timeout", "0", "--idle-timeout", "0")
    mam("publish", job, "started")
    mam("publish", job, "progress", "--detail", "half")
    mam("complete", job)
    code, out, _ = ended(subscriber)
    relay.terminate()

    assert (code, [json.loads(line)["event"] for line in out.splitlines()]) == (0, ["started", "progress", "completed"])
    assert ended(relay)[0] == 0


def test_a_relay_on_another_host_continues_at_the_saved_position(
    shared: Mam, store: PostgresStore, broker: Mosquitto, tmp_path: Path
) -> None:
    job = shared.register()
    shared("publish", job, "progress", "--detail", "first")
    assert relay_lag(store, Broker(host="127.0.0.1", port=broker.port)).waiting == 0
    on_another_host(shared, tmp_path)
    reader = Reader(broker)
    shared("publish", job, "progress", "--detail", "second")
    assert json.loads(reader.take(1)[0].split(" ", 2)[2])["detail"] == "second", "the first was not sent again"


def test_a_relay_that_stays_is_seen_from_every_host(
    shared: Mam, store: PostgresStore, broker: Mosquitto, tmp_path: Path
) -> None:
    there = Broker(host="127.0.0.1", port=broker.port)
    assert not relay_lag(store, there).served
    relay = shared.start("relay")
    wait_for_stderr(relay, "sending the events")
    on_another_host(shared, tmp_path)
    job = shared.register()
    shared("publish", job, "progress")
    wait_until_sent(store, broker)
    status = shared("relay", "--status", "--json").json
    assert [(one["served"], one["waiting"], one["sent"]) for one in status] == [(True, 0, 1)]
    relay.send_signal(signal.SIGTERM)
    assert ended(relay)[0] == 0
    assert not relay_lag(store, there).served


def test_two_relays_take_turns_and_killed_ones_lose_nothing(
    shared: Mam, store: PostgresStore, broker: Mosquitto
) -> None:
    chance = random.Random(4)
    job = shared.register()
    subscriber = shared.start("subscribe", job, "--json", "--timeout", "0", "--idle-timeout", "0")
    relays = [shared.start("relay") for _ in range(2)]
    registry_publish(store, job, EVENTS)
    for _ in range(KILLS):
        at = chance.randrange(2)
        relays[at].kill()
        relays[at].wait()
        relays[at] = shared.start("relay")
        registry_publish(store, job, EVENTS // KILLS)
    shared("complete", job)
    code, out, _ = ended(subscriber)
    wait_until_sent(store, broker)

    assert (code, set(numbers(out))) == (0, stored(store))
    assert len(numbers(out)) == len(set(numbers(out))), "no event is printed twice"
    assert [process.poll() for process in relays] == [None, None]


def registry_publish(store: PostgresStore, job: str, count: int) -> None:
    from mam.registry import Registry

    for number in range(count):
        Registry(store).publish(job, event="progress", detail=f"step {number}")


@pytest.mark.parametrize("sent", ["", "{", "[]", '{"at": {}}', "null"])
def test_a_position_that_is_damaged_sends_everything_again(
    shared: Mam, store: PostgresStore, broker: Mosquitto, sent: str
) -> None:
    job = shared.register()
    shared("publish", job, "progress", "--detail", "one")
    reader = Reader(broker)
    store.save_position(relay_name(broker), sent)
    assert shared("relay", "--once").code == 0
    assert json.loads(reader.take(1)[0].split(" ", 2)[2])["detail"] == "one"

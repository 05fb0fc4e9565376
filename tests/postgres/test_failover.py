"""A standby takes over under load: with a synchronous one nothing is lost, and mam notices what another one lacks."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from mam.bus.saved_position import subscribe_consumer
from mam.errors import ClaimLost, StoreUnavailable, StoreUnconfirmed, UnknownJob
from mam.registry import Registry
from mam.stores.consumer import Consumer
from mam.stores.port import Query
from mam.stores.postgres import limits
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal
from tests.cli.command import finish
from tests.postgres.server import PrivateServer
from tests.postgres.standby import Standby, address, configure
from tests.waiting import await_that
from tests.work.support import PidPipe, await_gone
from tests.work.worker_commands import Working, ended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command import Mam
    from tests.waiting import Gate

pytestmark = pytest.mark.external

WRITERS, BEFORE, AFTER = 3, 20, 20
"""How many jobs are registered before the primary is killed, and after."""


@pytest.fixture
def pair() -> Iterator[tuple[PrivateServer, Standby]]:
    with TemporaryDirectory(prefix="mam-pg-") as name:
        folder = Path(name)
        os.chmod(folder, 0o755)
        primary = PrivateServer(folder / "primary")
        create_postgres_store(primary.url())
        standby = Standby(primary)
        yield primary, standby
        standby.stop()


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[PidPipe]:
    pids = PidPipe(tmp_path)
    yield pids
    pids.close()


def test_a_synchronous_standby_loses_nothing(pair: tuple[PrivateServer, Standby]) -> None:
    primary, standby = pair
    standby.await_streaming()
    configure(primary, "synchronous_standby_names = 'standby'")
    known: list[str] = []
    ends = threading.Event()

    def write() -> None:
        store = PostgresStore(address(primary, standby))
        while not ends.is_set():
            try:
                known.append(Registry(store).register(prompt="p", agent="codex").job.job_id)
            except StoreUnavailable:  # the failover took longer than a command waits
                continue
        store.close()

    writers = [threading.Thread(target=write) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    await_that(lambda: len(known) >= BEFORE)
    primary.kill()
    standby.promote()
    then = len(known)
    await_that(lambda: len(known) >= then + AFTER, "the writers do not find the new primary")
    ends.set()
    for writer in writers:
        writer.join()
    store = PostgresStore(standby.url())
    assert {job.job_id for job in store.select(Query())} >= set(known)
    check_journal(store)
    store.close()


def test_a_command_that_starts_during_a_failover_waits_for_its_end(
    pair: tuple[PrivateServer, Standby], mam: Mam
) -> None:
    primary, standby = pair
    standby.await_streaming()
    primary.kill()
    with psycopg.connect(standby.url(), autocommit=True) as connection:
        before = sessions(connection)
        register = mam.start("register", "p", "--agent", "codex", "--store", address(primary, standby))
        await_that(lambda: sessions(connection) > before + 2, "the command does not try the standby again")
    standby.promote()
    ran = finish(register)
    assert ran.code == 0, ran.stderr
    assert mam("status", ran.line, "--store", standby.url()).line == "pending"


def sessions(connection: psycopg.Connection[Any]) -> int:
    """How many there were at this server, of everybody."""
    rows = connection.execute("SELECT sessions FROM pg_stat_database WHERE datname = 'postgres'").fetchall()
    return int(rows[0][0])


def test_a_standby_alone_is_named_after_a_while(
    pair: tuple[PrivateServer, Standby], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, standby = pair
    monkeypatch.setattr(limits, "PATIENCE_SECONDS", 0.2)
    primary.kill()
    with pytest.raises(StoreUnavailable, match="no server of the address accepts writes"):
        PostgresStore(address(primary, standby))


def stop_following(primary: PrivateServer, standby: Standby) -> None:
    """The standby lacks what is written from now on."""
    standby.await_streaming()
    configure(standby, "primary_conninfo = ''")
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        await_that(lambda: not connection.execute("SELECT 1 FROM pg_stat_replication").fetchall())


def test_what_an_asynchronous_standby_lacks_is_noticed(
    pair: tuple[PrivateServer, Standby], caplog: pytest.LogCaptureFixture
) -> None:
    primary, standby = pair
    store = PostgresStore(address(primary, standby))
    registry = Registry(store)
    registry.register(prompt="kept", agent="codex", job_id="kept")
    held = registry.pick("codex", owner="me")
    assert held is not None
    stop_following(primary, standby)
    registry.register(prompt="lost", agent="codex", job_id="lost")
    lost = registry.pick("codex", owner="me")
    assert lost is not None
    again = registry.release("kept", attempt=held.attempt, claim_id=held.claim_id)
    assert again.status == "pending"
    *_, last = store.entries(None)
    offset = last.offset

    primary.kill()
    standby.promote()
    other = PostgresStore(standby.url())
    for number in range(4):  # whose entries take the numbers of the lost ones
        Registry(other).register(prompt="new", agent="shell", job_id=f"new{number}")

    assert store.wait(offset, 60)
    assert [entry.job_id for entry in store.entries(offset)] == ["new0", "new1", "new2", "new3"]
    assert "lost the entries of its journal after number 2" in caplog.text
    (*_, last) = store.entries(offset)
    assert not store.wait(last.offset, 0.01) or not store.wait(last.offset, 0.01), "it sleeps again"
    with pytest.raises((UnknownJob, ClaimLost)):
        registry.heartbeat("lost", attempt=lost.attempt, claim_id=lost.claim_id)
    assert registry.heartbeat("kept", attempt=held.attempt, claim_id=held.claim_id).status == "running"
    store.close()
    other.close()


def test_a_consumer_continues_after_lost_entries(pair: tuple[PrivateServer, Standby], tmp_path: Path) -> None:
    primary, standby = pair
    store = PostgresStore(address(primary, standby))
    registry = Registry(store)
    registry.register(prompt="kept", agent="codex", job_id="kept")
    consumer, bookmark = Consumer(store, "test"), subscribe_consumer(store, str(tmp_path))
    consumer.load()
    bookmark.skip_to_end()
    read_all(consumer)
    stop_following(primary, standby)
    registry.register(prompt="lost", agent="codex", job_id="lost")
    assert read_all(consumer) == ["lost"]
    assert read_all(bookmark) == ["lost"]

    primary.kill()
    standby.promote()
    registry.register(prompt="new", agent="codex", job_id="new")

    assert read_all(consumer) == ["new"], "a running consumer goes on at the last common entry"
    assert read_all(consumer) == [], "once"
    registry.register(prompt="next", agent="codex", job_id="next")
    assert read_all(consumer) == ["next"]
    again = Consumer(store, "test")
    again.load()
    assert (again.starts_over, read_all(again)) == (False, [])
    bookmark.load()
    assert bookmark.starts_over, "its file, which no standby has, names an entry that was lost"
    assert read_all(bookmark) == ["kept", "new", "next"]
    store.close()


def read_all(consumer: Consumer) -> list[str]:
    """Handles the entries after the position and saves it."""
    read = []
    for entry in consumer.entries():
        consumer.done(entry)
        read.append(entry.job_id)
    consumer.save()
    return read


def test_a_worker_ends_the_agent_of_a_claim_that_was_lost(
    pair: tuple[PrivateServer, Standby], mam: Mam, pids: PidPipe, gate: Gate
) -> None:
    primary, standby = pair
    mam.env["MAM_STORE"] = address(primary, standby)
    job = mam.register(f"echo $$ > {pids.path}; [ -e again ] || {{ touch again; exec sleep 1000; }}; {gate.wait}")
    stop_following(primary, standby)
    with Working(mam, "-s", "shell", "--lease", "20") as worker:
        lost = pids.processes(1)
        primary.kill()
        standby.promote()
        await_gone(lost)
        pids.processes(1)
        gate.open()
        record = ended(mam, job)
        assert (record["status"], record["attempt"]) == ("completed", 1), "the store knows of one attempt"
        assert worker.poll() is None


def test_a_commit_that_is_not_confirmed_ends_in_time(
    pair: tuple[PrivateServer, Standby], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, _ = pair
    store = PostgresStore(primary.url())
    registry = Registry(store)
    configure(primary, "synchronous_standby_names = 'away'")
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        shown = "SHOW synchronous_standby_names"
        await_that(lambda: connection.execute(shown).fetchone() == ("away",))
    monkeypatch.setattr(limits, "ANSWER_SECONDS", 0.5)
    with pytest.raises(StoreUnconfirmed, match=r"within 0\.5 s .* the same --key"):
        registry.register(prompt="p", agent="codex", key="once")
    with pytest.raises(StoreUnconfirmed):
        registry.register(prompt="p", agent="codex", job_id="one")
    monkeypatch.undo()
    configure(primary, "synchronous_standby_names = ''")
    registry.register(prompt="p", agent="codex", key="once")
    assert [job.key for job in store.select(Query())].count("once") == 1
    store.close()

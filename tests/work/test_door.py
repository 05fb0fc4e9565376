"""The worker's door: one job's reports, and nothing of any other job's."""

from __future__ import annotations

import gc
import os
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mam.door import Answered, DoorRegistry, NotHere
from mam.errors import StoreUnavailable, TimedOut
from mam.jobs.record import parse_job
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.memory import MemoryStore
from mam.work.door import Doors
from tests.work.doors import PATIENCE, ask, claimed, held_job, refused, through

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.work.door import Door

MIB = 1 << 20


@pytest.fixture(params=["memory", "files", "sqlite"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Registry:
    if request.param == "memory":
        return Registry(MemoryStore())
    if request.param == "sqlite":
        sqlite = pytest.importorskip("mam.stores.sqlite.store")
        sqlite.create_sqlite_store(str(tmp_path / "jobs.db"))
        return Registry(sqlite.SqliteStore(str(tmp_path / "jobs.db")))
    create_files_store(str(tmp_path / "jobs"))
    return Registry(FilesStore(str(tmp_path / "jobs")))


@pytest.fixture
def doors(registry: Registry) -> Iterator[Doors]:
    with Doors(registry) as doors:
        yield doors


@pytest.fixture
def job(registry: Registry) -> Job:
    return held_job(registry)


@pytest.fixture
def door(doors: Doors, job: Job) -> Door:
    return doors.open(job.job_id, job.attempt)


def everything(registry: Registry, *job_ids: str) -> list[Job]:
    return [registry.get(job_id) for job_id in job_ids]


# -- the place ---------------------------------------------------------------------------------------------------------


def test_the_socket_is_private_and_its_name_is_short_and_new(doors: Doors, door: Door, job: Job) -> None:
    folder = os.path.dirname(door.address)
    assert stat.S_IMODE(os.lstat(door.address).st_mode) == 0o600
    assert stat.S_IMODE(os.lstat(folder).st_mode) == 0o700
    assert os.lstat(folder).st_uid == os.geteuid()
    assert len(os.fsencode(door.address)) <= 103
    assert doors.open(job.job_id, 2).address != door.address
    assert job.job_id not in door.address
    assert door.environment == {"MAM_JOB_ID": job.job_id, "MAM_ATTEMPT": "1", "MAM_SOCKET": door.address}


def test_a_closed_door_is_gone(doors: Doors, door: Door) -> None:
    folder = os.path.dirname(door.address)
    client = through(door)
    door.close()
    door.close()
    assert not os.path.lexists(door.address)
    with pytest.raises(StoreUnavailable, match="went away"):  # it had come in, and was sent away
        client.heartbeat(door.bound.job_id)
    with pytest.raises(StoreUnavailable, match="gone"):
        through(door)
    doors.close()
    doors.close()
    assert not os.path.exists(folder)


def test_doors_leave_no_thread_and_no_descriptor(registry: Registry, job: Job) -> None:
    gc.collect()  # stores of earlier tests still hold some
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(20):
        with Doors(registry) as doors, doors.open(job.job_id, 1) as door:
            assert ask(door, verb="heartbeat")["ok"]
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


# -- what a holder says ------------------------------------------------------------------------------------------------


def test_an_event_is_stored_and_its_number_comes_back(registry: Registry, door: Door, job: Job) -> None:
    told = through(door).publish(job.job_id, event="progress", detail="half", data={"percent": 50}, attempt=1)
    assert told.last_seq == 1
    assert registry.store.events(job.job_id)[0]["data"] == {"percent": 50}
    assert not hasattr(told, "prompt")


def test_the_whole_record_comes_when_it_is_asked_for(registry: Registry, door: Door, job: Job) -> None:
    told = through(door, whole=True).publish(job.job_id, event="progress")
    assert parse_job(told.to_json(), "door") == registry.get(job.job_id)


def test_what_the_agent_says_about_its_end_moves_nothing(registry: Registry, door: Door, job: Job) -> None:
    assert through(door).complete(job.job_id, result="done").status == "running"
    said = registry.get(job.job_id).said
    assert said is not None
    assert (said["status"], said["result"]) == ("completed", "done")
    through(door).fail(job.job_id, reason="no", retryable=True)
    said = registry.get(job.job_id).said
    assert said is not None
    assert (said["status"], said["reason"], said["retryable"]) == ("error", "no", True)


def test_an_empty_result_is_not_no_result(registry: Registry, door: Door, job: Job) -> None:
    through(door).complete(job.job_id, result="")
    assert (registry.get(job.job_id).said or {})["result"] == ""
    through(door).complete(job.job_id)
    assert "result" not in (registry.get(job.job_id).said or {})


def test_an_agent_cannot_make_the_workers_lease_longer(registry: Registry, door: Door, job: Job) -> None:
    told = through(door).heartbeat(job.job_id, lease_seconds=1e6)
    assert told.lease is not None
    assert told.lease.seconds == 60.0
    ask(door, verb="heartbeat", lease_seconds=1e6)
    lease = registry.get(job.job_id).lease
    assert lease is not None
    assert lease.seconds == 60.0


def test_every_report_is_a_sign_of_life_and_no_reading_is(registry: Registry, doors: Doors, job: Job) -> None:
    signs: list[str] = []
    door = doors.open(job.job_id, 1, lambda: signs.append("!"))
    for verb in ("get", "resolve"):
        assert ask(door, verb=verb)["ok"]
    refused(ask(door, verb="publish", event="nonsense"), 2)
    assert not signs
    ask(door, verb="publish", event="progress")
    ask(door, verb="heartbeat")
    ask(door, verb="register", agent="codex", prompt="a child")
    ask(door, verb="fail", reason="no")
    ask(door, verb="complete")
    assert len(signs) == 5


def test_a_listener_in_trouble_harms_nobody(doors: Doors, job: Job) -> None:
    def trouble() -> None:
        raise RuntimeError("of its own")

    door = doors.open(job.job_id, 1, trouble)
    assert ask(door, verb="heartbeat")["ok"]
    assert ask(door, verb="heartbeat")["ok"]


def test_a_door_may_be_closed_by_who_hears_the_sign(doors: Doors, job: Job) -> None:
    opened: list[Door] = []
    opened.append(doors.open(job.job_id, 1, lambda: opened[0].close()))
    ask_anyway = through(opened[0]).heartbeat(job.job_id)
    assert ask_anyway.status == "running"
    assert not os.path.lexists(opened[0].address)


def test_another_attempt_is_refused(registry: Registry, doors: Doors, door: Door, job: Job) -> None:
    before = registry.get(job.job_id)
    refused(ask(door, verb="complete", attempt=2), 4, "attempt 1")
    refused(ask(door, verb="publish", event="progress", attempt=0), 4)
    refused(ask(door, verb="heartbeat", attempt=10**400), 2)
    refused(ask(door, verb="heartbeat", attempt="1"), 2)
    refused(ask(door, verb="heartbeat", attempt=True), 2)
    assert registry.get(job.job_id) == before


def test_who_lost_the_claim_is_told_so(registry: Registry, doors: Doors, door: Door, job: Job) -> None:
    registry.release(job.job_id, attempt=1)
    second = claimed(registry, registry.get(job.job_id))
    assert second.attempt == 2
    for verb in ("publish", "complete", "fail", "heartbeat", "register"):
        refused(ask(door, verb=verb, event="progress", reason="x", agent="a", prompt="p"), 4, "attempt 2")
    refused(ask(door, verb="heartbeat", attempt=2), 4)
    assert registry.get(job.job_id) == second


# -- the others --------------------------------------------------------------------------------------------------------


def test_no_other_job_can_be_touched_or_read(registry: Registry, door: Door, job: Job) -> None:
    other = held_job(registry, "codex")
    child = registry.register(prompt="c", agent="a", parent_id=job.job_id, depth=1).job
    before = everything(registry, other.job_id, child.job_id)
    names: list[Any] = [other.job_id, other.job_id[:12], child.job_id, "", "../x", "x" * 500, 7, None, ["a"], {}]
    for verb in ("publish", "heartbeat", "complete", "fail"):
        for name in names:
            refused(ask(door, verb=verb, job=name, event="progress", reason="r"), 1)
    for verb in ("get", "resolve"):
        refused(ask(door, verb=verb, job=other.job_id), 1)
    refused(ask(door, verb="wait", seen={other.job_id: ""}), 1)
    assert everything(registry, other.job_id, child.job_id) == before
    foreign, unknown = ask(door, verb="get", job=other.job_id), ask(door, verb="get", job="f" * 32)
    assert foreign["message"].replace(other.job_id, "") == unknown["message"].replace("f" * 32, "")


@pytest.mark.parametrize("verb", ["pick", "cancel", "release", "select", "set_status", "retry", "__init__", ""])
def test_nothing_else_is_taken(door: Door, job: Job, verb: str) -> None:
    refused(ask(door, verb=verb, job=job.job_id), 1, "it takes publish")


def test_a_client_without_a_store_is_told_what_the_socket_takes(door: Door, registry: Registry) -> None:
    client = through(door)
    with pytest.raises(NotHere, match="takes only publish"):
        client.pick("shell", owner="me")
    with pytest.raises(NotHere, match="no job"):
        client.get(held_job(registry, "codex").job_id)


def test_what_is_not_for_the_door_goes_to_the_store(door: Door, registry: Registry) -> None:
    other = held_job(registry, "codex")
    client = DoorRegistry(door.address, lambda: registry)
    assert client.get(other.job_id) == other
    assert client.heartbeat(other.job_id).job_id == other.job_id
    assert client.resolve(other.job_id[:12]) == other.job_id
    assert client.cancel(other.job_id).status == "cancelled"


# -- children ----------------------------------------------------------------------------------------------------------


def test_a_child_is_a_child_whatever_it_says(registry: Registry, door: Door, job: Job) -> None:
    other = held_job(registry, "codex")
    registration = through(door).register(
        prompt="sub", agent="codex", parent_id=other.job_id, depth=-7, priority=3, artifacts=["a.md"], workdir="/tmp"
    )
    child = registry.get(registration.job.job_id)
    assert registration.created
    assert (child.parent_id, child.depth, child.priority, child.prompt) == (job.job_id, 1, 3, "sub")


@pytest.mark.parametrize(
    "choices",
    [
        {"job_id": "mine"}, {"retry_of": "x"}, {"nonsense": 1}, {"priority": "high"}, {"priority": True},
        {"artifacts": "a.md"}, {"artifacts": [1]}, {"workdir": "here"}, {"workdir": "/a\0b"}, {"artifacts": ["/etc"]},
        {"timeout_sec": 1.5}, {"timeout_sec": 10**30}, {"validation": ["x"]}, {"validation": {"a": "x" * 100_000}},
        {"label": "a\nb"}, {"due_ms": -1}, {"workspace": "moon"}, {"origin_host": 5}, [], "x",
    ],
)  # fmt: skip
def test_a_child_that_no_store_should_hold_is_refused(registry: Registry, door: Door, choices: Any) -> None:
    refused(ask(door, verb="register", agent="codex", prompt="p", choices=choices), 2)
    refused(ask(door, verb="register", agent="codex", choices={}), 2)
    refused(ask(door, verb="register", agent=7, prompt="p"), 2)


def test_depth_has_a_limit(registry: Registry, doors: Doors) -> None:
    deepest = held_job(registry, depth=3)
    refused(ask(doors.open(deepest.job_id, 1), verb="register", agent="a", prompt="p"), 1, "3 deep", "max_depth")
    with Doors(registry, max_depth=4) as deeper:
        assert ask(deeper.open(deepest.job_id, 1), verb="register", agent="a", prompt="p")["ok"]


def test_a_child_has_no_more_rights_than_its_parent(registry: Registry, doors: Doors, door: Door) -> None:
    asked = {"verb": "register", "agent": "a", "prompt": "p"}
    refused(ask(door, **asked, choices={"permissions": "full"}), 1, "cannot hand out full")
    assert registry.get(ask(door, **asked)["job"]["job_id"]).permissions == "edit"
    careful = doors.open(held_job(registry, permissions="ask").job_id, 1)
    answer = ask(careful, **asked, choices={"permissions": "edit"})
    assert registry.get(answer["job"]["job_id"]).permissions == "ask"
    free = doors.open(held_job(registry, permissions="full").job_id, 1)
    answer = ask(free, **asked, choices={"permissions": "full"})
    assert registry.get(answer["job"]["job_id"]).permissions == "full"


def test_the_key_of_a_strangers_job_shows_nothing_of_it(registry: Registry, door: Door) -> None:
    registry.register(prompt="a secret plan", agent="a", key="k")
    answer = ask(door, verb="register", agent="a", prompt="p", choices={"key": "k"})
    refused(answer, 1, "key")
    assert "secret" not in str(answer)
    first = through(door).register(prompt="p", agent="a", key="own")
    again = through(door).register(prompt="q", agent="a", key="own")
    assert (again.created, again.job.job_id, again.job.prompt) == (False, first.job.job_id, "p")


def test_a_child_depends_on_its_family_only(registry: Registry, door: Door, job: Job) -> None:
    other = registry.register(prompt="x", agent="a").job
    refused(ask(door, verb="register", agent="a", prompt="p", choices={"after": [other.job_id]}), 1)
    first = through(door).register(prompt="p", agent="a").job.job_id
    second = through(door).register(prompt="p", agent="a", after=[first[:20], job.job_id]).job.job_id
    assert registry.get(second).after == [first, job.job_id]


def test_the_family_can_be_read_by_its_beginnings(registry: Registry, door: Door, job: Job) -> None:
    client = through(door)
    child = client.register(prompt="p", agent="a").job.job_id
    grandchild = registry.register(prompt="g", agent="a", parent_id=child, depth=2).job.job_id
    for job_id in (job.job_id, child, grandchild):
        assert client.get(job_id) == registry.get(job_id)
        assert client.resolve(job_id[:20]) == job_id
    registry.register(job_id="same-1", prompt="g", agent="a", parent_id=child, depth=2)
    registry.register(job_id="same-2", prompt="g", agent="a", parent_id=child, depth=2)
    registry.register(job_id="same-of-others", prompt="g", agent="a")
    with pytest.raises(Answered, match="same-1, same-2") as ambiguous:
        client.resolve("same")
    assert ambiguous.value.exit_code == 6
    assert "others" not in str(ambiguous.value)


def test_parents_that_go_round_in_a_circle_end(registry: Registry, door: Door) -> None:
    registry.register(job_id="one", prompt="g", agent="a", parent_id="two", depth=1)
    registry.register(job_id="two", prompt="g", agent="a", parent_id="one", depth=1)
    refused(ask(door, verb="get", job="one"), 1)


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_waiting_ends_when_the_child_does(registry: Registry, door: Door) -> None:
    client = through(door)
    child = client.register(prompt="p", agent="a").job.job_id
    followed = client.follow([child])
    assert next(followed).status == "pending"
    claimed(registry, registry.get(child))
    assert next(followed).status == "running"
    registry.cancel(child, reason="enough")
    last = list(followed)
    assert [job.status for job in last] == ["cancelled"]
    assert last[0] == registry.get(child)


def test_a_change_while_the_request_is_parked_wakes_it(registry: Registry, door: Door) -> None:
    client = through(door)
    child = client.register(prompt="p", agent="a").job.job_id
    seen: list[str] = []
    parked = threading.Event()

    def wait() -> None:
        for job in client.follow([child], PATIENCE):
            seen.append(job.status)
            parked.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert parked.wait(PATIENCE)
    registry.complete(child)
    waiter.join(PATIENCE)
    assert seen == ["pending", "completed"]


def test_others_are_served_while_somebody_waits(registry: Registry, doors: Doors, door: Door) -> None:
    client = through(door)
    child = client.register(prompt="p", agent="a").job.job_id
    followed = client.follow([child])
    next(followed)
    waiter = threading.Thread(target=lambda: list(followed))
    waiter.start()
    for _ in range(50):
        assert ask(door, verb="heartbeat")["ok"]
    registry.complete(child)
    waiter.join(PATIENCE)
    assert not waiter.is_alive()


def test_waiting_has_its_time(registry: Registry, door: Door) -> None:
    client = through(door)
    child = client.register(prompt="p", agent="a").job.job_id
    with pytest.raises(TimedOut, match=r"1 job has not ended within 0\.2 s"):
        list(client.follow([child], 0.2))
    with pytest.raises(TimedOut):
        list(client.follow([child], 0))


def test_many_children_are_waited_for(registry: Registry, door: Door) -> None:
    client = through(door)
    ids = [client.register(prompt="p" * MIB, agent="a").job.job_id for _ in range(12)]
    for job_id in ids:
        registry.complete(job_id)
    assert sorted(job.job_id for job in client.follow(ids)) == sorted(ids)


def test_a_job_does_not_wait_for_itself(door: Door, job: Job) -> None:
    refused(ask(door, verb="wait", seen={job.job_id: ""}), 1, "own end")


@pytest.mark.parametrize(
    "request_",
    [{}, {"seen": {}}, {"seen": []}, {"seen": {"a": 1}}, {"seen": {"a": ""}, "longest": 1e9},
     {"seen": {"a": ""}, "longest": "x"}, {"seen": {f"j{n}": "" for n in range(1001)}}],
)  # fmt: skip
def test_a_wait_that_cannot_be_meant_is_refused(door: Door, request_: dict[str, Any]) -> None:
    refused(ask(door, verb="wait", **request_), 2)


def test_a_child_that_vanishes_is_not_waited_for(tmp_path: Path) -> None:
    create_files_store(str(tmp_path / "jobs"))
    registry = Registry(FilesStore(str(tmp_path / "jobs")))
    parent = held_job(registry)
    with Doors(registry) as doors:
        client = through(doors.open(parent.job_id, 1))
        child = client.register(prompt="p", agent="a").job.job_id
        followed = client.follow([child], PATIENCE)
        assert next(followed).status == "pending"
        (tmp_path / "jobs" / f"{child}.json").unlink()
        with pytest.raises(Answered, match="no job"):
            list(followed)


# -- much --------------------------------------------------------------------------------------------------------------


def test_long_texts_pass_as_they_are(registry: Registry, door: Door, job: Job) -> None:
    text = '"\\\n\x01ü😀' * (8 * MIB // 10)
    client = through(door)
    child = client.register(prompt=text, agent="a").job.job_id
    assert client.get(child).prompt == text
    client.complete(job.job_id, result=text)
    assert (registry.get(job.job_id).said or {})["result"] == text
    assert client.get(job.job_id) == registry.get(job.job_id)
    client.fail(job.job_id, reason="\x01" * 65536)


def test_logs_come_in_pages(registry: Registry, job: Job, tmp_path: Path) -> None:
    from mam.audit.mirror import AuditLog

    logs = str(tmp_path / "logs")
    logged = Registry(registry.store, AuditLog(logs))
    with Doors(logged, logs_dir=logs) as doors:
        client = through(doors.open(job.job_id, 1))
        for number in range(60):
            logged.publish(job.job_id, event="progress", data={"filler": "x" * 60_000, "number": number})
        lines = list(client.logs(job.job_id))
        told = [line["payload"]["data"]["number"] for line in lines if line["event"] == "published"]
        assert told == list(range(60))
        with pytest.raises(NotHere):
            list(client.logs(held_job(registry, "codex").job_id))
    with Doors(registry) as doors:
        refused(ask(doors.open(job.job_id, 1), verb="logs"), 1, "no log")

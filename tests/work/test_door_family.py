"""What a job does through its door with the jobs that it registered."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from mam.door_client import DoorError
from mam.errors import TimedOut
from mam.registry import Registry
from mam.work.door.server import DoorServer
from tests.waiting import await_that
from tests.work.door_fixtures import door_fixture, door_server_fixture, job_fixture, registry_fixture
from tests.work.doors import PATIENCE, ask, claimed, held_job, refused, through

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.work.door.server import Door

__all__ = ["door_fixture", "door_server_fixture", "job_fixture", "registry_fixture"]

MIB = 1 << 20


# -- children ----------------------------------------------------------------------------------------------------------


def test_a_child_cannot_choose_its_parent_or_depth(registry: Registry, door: Door, job: Job) -> None:
    other = held_job(registry, "codex")
    registration = through(door).register(
        prompt="sub", agent="codex", parent_id=other.job_id, depth=-7, priority=-3, artifacts=["a.md"], workdir="/tmp"
    )
    child = registry.get(registration.job.job_id)
    assert registration.created
    assert (child.parent_id, child.depth, child.priority, child.prompt) == (job.job_id, 1, -3, "sub")


BAD_CHOICES: list[Any] = [
    {"nonsense": 1}, {"priority": "high"}, {"priority": True},
    {"artifacts": "a.md"}, {"artifacts": [1]}, {"workdir": "here"}, {"workdir": "/a\0b"}, {"artifacts": ["/etc"]},
    {"timeout_sec": 1.5}, {"timeout_sec": 10**30}, {"label": "a\nb"}, {"due_ms": -1}, {"workspace": "moon"},
    [], "x",
]  # fmt: skip


def test_a_child_that_no_store_should_hold_is_refused(registry: Registry, door: Door) -> None:
    for choices in BAD_CHOICES:
        refused(ask(door, verb="register", agent="codex", prompt="p", choices=choices), 2)
    refused(ask(door, verb="register", agent="codex", choices={}), 2)
    refused(ask(door, verb="register", agent=7, prompt="p"), 2)


def test_depth_has_a_limit(registry: Registry, door_server: DoorServer) -> None:
    deepest = held_job(registry, depth=3)
    refused(
        ask(door_server.open(deepest.job_id, 1, "/"), verb="register", agent="a", prompt="p"), 1, "3 deep", "max_depth"
    )
    with DoorServer(registry, max_depth=4) as deeper:
        assert ask(deeper.open(deepest.job_id, 1, "/"), verb="register", agent="a", prompt="p")["ok"]


def test_a_child_has_no_more_rights_than_its_parent(registry: Registry, door_server: DoorServer, door: Door) -> None:
    asked = {"verb": "register", "agent": "a", "prompt": "p"}
    refused(ask(door, **asked, choices={"permissions": "full"}), 1, "cannot give its child full")
    assert registry.get(ask(door, **asked)["job"]["job_id"]).permissions == "edit"
    careful = door_server.open(held_job(registry, permissions="ask").job_id, 1, "/")
    answer = ask(careful, **asked, choices={"permissions": "edit"})
    assert registry.get(answer["job"]["job_id"]).permissions == "ask"
    free = door_server.open(held_job(registry, permissions="full").job_id, 1, "/")
    answer = ask(free, **asked, choices={"permissions": "full"})
    assert registry.get(answer["job"]["job_id"]).permissions == "full"


def test_the_key_of_a_strangers_job_is_another_key(registry: Registry, door: Door) -> None:
    registry.register(prompt="a secret plan", agent="a", key="k")
    answer = ask(door, verb="register", agent="a", prompt="p", choices={"key": "k"})
    assert answer["created"]
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
    with pytest.raises(DoorError, match="same-1, same-2") as ambiguous:
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


def test_a_waiting_client_is_counted_and_shows_activity_when_it_stops(
    registry: Registry, door_server: DoorServer, job: Job
) -> None:
    signs: list[int] = []
    door = door_server.open(job.job_id, 1, "/", lambda: signs.append(door.waits))
    client = through(door)
    child = client.register(prompt="p", agent="a").job.job_id
    followed = client.follow([child])
    next(followed)
    assert door.waits == 0
    waiter = threading.Thread(target=lambda: list(followed))
    waiter.start()
    await_that(lambda: door.waits == 1, "the door does not count it as waiting")
    signs.clear()
    registry.complete(child)
    waiter.join(PATIENCE)
    await_that(lambda: door.waits == 0 and signs == [0], "its return was no sign")


def test_a_child_is_signed_when_that_is_asked_for(registry: Registry, door: Door) -> None:
    signed = through(door).register(prompt="p", agent="a", sign=True).job.job_id
    plain = through(door).register(prompt="p", agent="a").job.job_id
    assert len(registry.store.secrets(signed)["auth_token"]) >= 43
    assert registry.store.secrets(plain) == {}
    assert registry.get(signed).parent_id == door.scope.job_id
    answer = ask(door, verb="register", agent="a", prompt="p", sign="yes")
    assert (answer["exit_code"], "true or false" in answer["message"]) == (2, True)


def test_others_are_served_while_a_client_waits(registry: Registry, door_server: DoorServer, door: Door) -> None:
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


BAD_WAITS: list[dict[str, Any]] = [
    {}, {"seen": {}}, {"seen": []}, {"seen": {"a": 1}}, {"seen": {"a": ""}, "longest": 1e9},
    {"seen": {"a": ""}, "longest": "x"}, {"seen": {f"j{n}": "" for n in range(1001)}},
]  # fmt: skip


def test_a_wait_that_cannot_be_meant_is_refused(door: Door) -> None:
    for request in BAD_WAITS:
        refused(ask(door, verb="wait", **request), 2)

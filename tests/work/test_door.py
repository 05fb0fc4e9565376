"""The worker's door: one job's reports, and nothing of any other job's."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mam.door_client import DoorClient, NotHere
from mam.errors import StoreUnavailable
from mam.jobs.record import parse_job
from mam.registry import Registry
from mam.work.door.server import DoorServer
from tests.work.door_fixtures import door_fixture, door_server_fixture, job_fixture, registry_fixture
from tests.work.doors import ask, claimed, held_job, refused, through, unchanged_but
from tests.work.support import descriptors

if TYPE_CHECKING:
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.work.door.server import Door

__all__ = ["door_fixture", "door_server_fixture", "job_fixture", "registry_fixture"]

MIB = 1 << 20


def everything(registry: Registry, *job_ids: str) -> list[Job]:
    return [registry.get(job_id) for job_id in job_ids]


# -- the place ---------------------------------------------------------------------------------------------------------


def test_the_socket_is_private_and_its_name_is_short_and_new(door_server: DoorServer, door: Door, job: Job) -> None:
    folder = os.path.dirname(door.address)
    assert stat.S_IMODE(os.lstat(door.address).st_mode) == 0o600
    assert stat.S_IMODE(os.lstat(folder).st_mode) == 0o700
    assert os.lstat(folder).st_uid == os.geteuid()
    assert len(os.fsencode(door.address)) <= 103
    assert door_server.open(job.job_id, 2, "/").address != door.address
    assert job.job_id not in door.address
    named = {"MAM_JOB_ID": job.job_id, "MAM_ATTEMPT": "1", "MAM_CLAIM": job.claim_id}
    assert door.environment == {**named, "MAM_SOCKET": door.address}


def test_a_closed_door_is_gone(door_server: DoorServer, door: Door) -> None:
    folder = os.path.dirname(door.address)
    client = through(door)
    door.close()
    door.close()
    assert not os.path.lexists(door.address)
    with pytest.raises(StoreUnavailable, match="went away"):  # it had come in, and was sent away
        client.heartbeat(door.scope.job_id)
    with pytest.raises(StoreUnavailable, match="gone"):
        through(door)
    door_server.close()
    door_server.close()
    assert not os.path.exists(folder)


def test_doors_leave_no_thread_and_no_descriptor(registry: Registry, job: Job) -> None:
    before = descriptors(), threading.active_count()
    for _ in range(20):
        with DoorServer(registry) as door_server, door_server.open(job.job_id, 1, "/") as door:
            assert ask(door, verb="heartbeat")["ok"]
    assert (descriptors(), threading.active_count()) == before


# -- what a holder says ------------------------------------------------------------------------------------------------


def test_an_event_is_stored_and_its_number_comes_back(registry: Registry, door: Door, job: Job) -> None:
    told = through(door).publish(job.job_id, event="progress", detail="half", data={"percent": 50}, attempt=1)
    assert told.last_seq == 1
    assert registry.store.events(job.job_id)[0]["data"] == {"percent": 50}
    assert not hasattr(told, "prompt")


def test_the_whole_record_comes_when_it_is_asked_for(registry: Registry, door: Door, job: Job) -> None:
    told = through(door, whole=True).publish(job.job_id, event="progress")
    assert parse_job(told.to_json(), "door") == registry.get(job.job_id)


def test_a_report_of_the_agent_does_not_change_the_status(registry: Registry, door: Door, job: Job) -> None:
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


def test_every_report_is_a_sign_of_life_and_no_reading_is(
    registry: Registry, door_server: DoorServer, job: Job
) -> None:
    signs: list[str] = []
    door = door_server.open(job.job_id, 1, "/", lambda: signs.append("!"))
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


def test_a_failing_callback_does_not_affect_the_agent(door_server: DoorServer, job: Job) -> None:
    def problem() -> None:
        raise RuntimeError("of its own")

    door = door_server.open(job.job_id, 1, "/", problem)
    assert ask(door, verb="heartbeat")["ok"]
    assert ask(door, verb="heartbeat")["ok"]


def test_a_callback_may_close_the_door(door_server: DoorServer, job: Job) -> None:
    opened: list[Door] = []
    opened.append(door_server.open(job.job_id, 1, "/", lambda: opened[0].close()))
    ask_anyway = through(opened[0]).heartbeat(job.job_id)
    assert ask_anyway.status == "running"
    assert not os.path.lexists(opened[0].address)


def test_another_attempt_is_refused(registry: Registry, door_server: DoorServer, door: Door, job: Job) -> None:
    before = registry.get(job.job_id)
    refused(ask(door, verb="complete", attempt=2), 4, "attempt 1")
    refused(ask(door, verb="publish", event="progress", attempt=0), 4)
    refused(ask(door, verb="heartbeat", attempt=10**400), 2)
    refused(ask(door, verb="heartbeat", attempt="1"), 2)
    refused(ask(door, verb="heartbeat", attempt=True), 2)
    assert registry.get(job.job_id) == before


def test_another_claim_of_the_same_attempt_is_refused(
    registry: Registry, door_server: DoorServer, door: Door, job: Job
) -> None:
    before = registry.get(job.job_id)
    for verb in ("publish", "complete", "fail", "heartbeat"):
        request = {"verb": verb, "event": "progress", "reason": "x", "attempt": 1}
        refused(ask(door, **request, claim_id="another"), 4, "another claim of attempt 1")
        for claim_id in ("", "a b", "x" * 65, 7, True, ["a"]):
            refused(ask(door, **request, claim_id=claim_id), 2, "claim_id")
    assert registry.get(job.job_id) == before
    for own in (job.claim_id, None):
        assert ask(door, verb="heartbeat", attempt=1, claim_id=own)["job"]["claim_id"] == job.claim_id


def test_a_server_that_went_back_in_time_ends_what_the_door_is_for(registry: Registry, door: Door, job: Job) -> None:
    """Another worker holds the same attempt; whatever the agent gives, the door's own claim is compared."""
    other = registry.act(job.job_id, "test", lambda found, now: unchanged_but(found, now, claim_id="another"))
    for verb in ("publish", "complete", "fail", "heartbeat", "register"):
        request = {"verb": verb, "event": "progress", "reason": "x", "agent": "a", "prompt": "p"}
        refused(ask(door, **request), 4, "another claim holds attempt 1")
    assert registry.get(job.job_id) == other


def test_a_lost_claim_is_reported(registry: Registry, door_server: DoorServer, door: Door, job: Job) -> None:
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


def test_the_door_rejects_all_other_verbs(door: Door, job: Job) -> None:
    for verb in ("pick", "answer", "release", "select", "set_status", "retry", "__init__", ""):
        refused(ask(door, verb=verb, job=job.job_id), 1, "it takes publish")


def test_the_door_cancels_children_only(door: Door, registry: Registry, job: Job) -> None:
    child = ask(door, verb="register", agent="claude-code", prompt="p", choices={})["job"]["job_id"]
    other = held_job(registry, "codex").job_id

    refused(ask(door, verb="cancel", job=job.job_id), 1, "cannot cancel itself")
    refused(ask(door, verb="cancel"), 1, "cannot cancel itself")
    refused(ask(door, verb="cancel", job=other), 1, "no job")
    assert ask(door, verb="children")["jobs"][0]["job_id"] == child
    assert ask(door, verb="overview", job=child)["overview"]["why"]
    refused(ask(door, verb="overview", job=other), 1, "no job")
    assert ask(door, verb="cancel", job=child)["job"]["status"] == "cancelled"
    assert registry.get(other).status == "running"


def test_a_client_without_a_store_gets_the_refusal_of_the_door(door: Door, registry: Registry) -> None:
    with pytest.raises(NotHere, match="no job"):
        through(door).get(held_job(registry, "codex").job_id)


def test_requests_about_other_jobs_go_to_the_store(door: Door, registry: Registry) -> None:
    other = held_job(registry, "codex")
    client = DoorClient(door.address, lambda: registry)
    assert client.get(other.job_id) == other
    assert client.heartbeat(other.job_id).job_id == other.job_id
    assert client.resolve(other.job_id[:12]) == other.job_id


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
    from mam.audit.sync import AuditLog

    logs = str(tmp_path / "logs")
    logged = Registry(registry.store, AuditLog(logs))
    with DoorServer(logged, logs_dir=logs) as door_server:
        client = through(door_server.open(job.job_id, 1, "/"))
        for number in range(60):
            logged.publish(job.job_id, event="progress", data={"filler": "x" * 60_000, "number": number})
        lines = list(client.logs(job.job_id))
        told = [line["payload"]["data"]["number"] for line in lines if line["event"] == "published"]
        assert told == list(range(60))
        with pytest.raises(NotHere):
            list(client.logs(held_job(registry, "codex").job_id))
    with DoorServer(registry) as door_server:
        refused(ask(door_server.open(job.job_id, 1, "/"), verb="logs"), 1, "no log")

"""What the registry adds to a store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mam.errors import (
    AmbiguousId,
    ArtifactMissing,
    AttemptNeeded,
    BadInput,
    ClaimLost,
    Refused,
    TimedOut,
    UnknownJob,
)
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.stores.port import Query
from mam.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job
    from mam.stores.interest import Interest
    from mam.stores.port import Store

LABEL = "tmux:claude"


class Listener:
    """An audit sink that records its calls."""

    def __init__(self) -> None:
        self.followed = 0
        self.refusals: list[tuple[str, str]] = []

    def follow(self, store: Store) -> None:
        self.followed += 1

    def refused(self, store: Store, job_id: str, verb: str, why: str) -> None:
        self.refusals.append((job_id, verb))

    def history(self, store: Store, job_id: str) -> list[AuditRecord]:
        return [{"event": "registered", "job_id": job_id}]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def registry(clock: FakeClock, listener: Listener) -> Registry:
    return Registry(MemoryStore(clock), listener)


def _register(registry: Registry, job_id: str | None = None, **choices: Any) -> str:
    return registry.register(prompt="p", agent="codex", label=LABEL, job_id=job_id, **choices).job.job_id


def _claimed(registry: Registry, job_id: str | None = None, **choices: object) -> Job:
    _register(registry, job_id, **choices)
    job = registry.pick(LABEL, owner="worker")
    assert job is not None
    return job


# -- finding -------------------------------------------------------------------------------------------------------


def test_a_unique_beginning_is_enough_for_every_verb(registry: Registry) -> None:
    _claimed(registry, "abcdef01")
    _register(registry, "abxx")

    assert registry.resolve("abc") == "abcdef01"
    assert registry.get("abc").job_id == "abcdef01"
    assert registry.publish("abc", event="progress", attempt=1).last_seq == 1
    assert registry.next_seq("abc") == 2
    assert registry.heartbeat("abc", attempt=1).job_id == "abcdef01"
    assert registry.explain("abc")[0].job_id == "abcdef01"
    assert registry.complete("abc", attempt=1).status == "completed"
    assert registry.retry("abcd").job.retry_of == "abcdef01"


def test_a_whole_id_wins_over_longer_ones(registry: Registry) -> None:
    for job_id in ("abc", "abcd", "abcde"):
        _register(registry, job_id)

    assert registry.resolve("abc") == "abc"
    assert registry.cancel("abcd").job_id == "abcd"
    assert registry.get("abc").status == "pending"


def test_an_ambiguous_beginning_lists_its_candidates_and_changes_nothing(registry: Registry) -> None:
    for job_id in ("abc1", "abc2", "abd"):
        _register(registry, job_id)

    with pytest.raises(AmbiguousId, match=r"abc could be any of: abc1, abc2\.") as refused:
        registry.cancel("abc")

    assert refused.value.exit_code == 6
    assert {registry.get(job_id).status for job_id in ("abc1", "abc2")} == {"pending"}


def test_a_few_of_many_candidates_are_listed(registry: Registry) -> None:
    for number in range(30):
        _register(registry, f"job{number:02}")

    with pytest.raises(AmbiguousId, match=r"job08, job09 …\."):
        registry.resolve("job")


@pytest.mark.parametrize("text", ["nobody", "../x", "", "a/b", "a\0", "-x", "%", "x" * 500, "ABC"])
def test_an_unknown_job_is_an_error_of_every_verb(registry: Registry, text: str) -> None:
    _register(registry, "abc")

    for verb in (registry.get, registry.release, registry.next_seq, registry.retry, registry.complete):
        with pytest.raises(UnknownJob) as refused:
            verb(text)
        assert refused.value.exit_code == 1
        assert len(str(refused.value)) < 200


# -- handing out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["", "a\nb", "x" * 300])
def test_a_label_or_owner_that_cannot_be_is_refused_before_anything_is_claimed(registry: Registry, label: str) -> None:
    job_id = _register(registry)

    with pytest.raises(BadInput):
        registry.pick(label, owner="worker")
    with pytest.raises(BadInput):
        registry.pick(LABEL, owner=label)

    assert registry.get(job_id).attempt == 0


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e12])
def test_a_lease_that_no_clock_can_measure_is_refused(registry: Registry, seconds: float) -> None:
    job_id = _register(registry)
    with pytest.raises(BadInput, match="lease"):
        registry.pick(LABEL, owner="worker", lease_seconds=seconds)
    assert registry.get(job_id).attempt == 0

    job = registry.pick(LABEL, owner="worker")
    assert job is not None
    with pytest.raises(BadInput, match="lease"):
        registry.heartbeat(job_id, attempt=1, lease_seconds=seconds)
    assert registry.get(job_id) == job


def test_a_pick_that_waits_is_woken_by_a_new_job(registry: Registry) -> None:
    got: list[Job | None] = []
    waiting = _Watched(registry.store)
    picker = threading.Thread(
        target=lambda: got.append(Registry(waiting).pick(LABEL, owner="worker", wait=60))  # type: ignore[arg-type]
    )
    picker.start()
    assert waiting.asleep.wait(60)

    job_id = _register(registry)

    picker.join(60)
    assert [job and job.job_id for job in got] == [job_id]


def test_a_pick_that_waits_in_vain_gives_up(registry: Registry) -> None:
    assert registry.pick(LABEL, owner="worker", wait=0.01) is None


def test_a_second_retry_names_the_first(registry: Registry) -> None:
    old = _claimed(registry, "old")
    registry.fail(old.job_id, reason="broken")
    new = registry.retry("old").job.job_id
    registry.cancel(new)

    with pytest.raises(Refused, match=f"retried as {new}, which is cancelled; `mam retry {new[:8]}`"):
        registry.retry("old")

    assert registry.retry(new).job.retry_of == new


# -- writing -------------------------------------------------------------------------------------------------------


def test_where_attempts_are_required_a_running_job_takes_no_write_without_one(clock: FakeClock) -> None:
    registry = Registry(MemoryStore(clock), require_attempt=True)
    job = _claimed(registry)
    writes: list[Callable[[], object]] = [
        lambda: registry.heartbeat(job.job_id),
        lambda: registry.complete(job.job_id),
        lambda: registry.fail(job.job_id, reason="x"),
        lambda: registry.release(job.job_id),
        lambda: registry.publish(job.job_id, event="progress"),
        lambda: registry.set_status(job.job_id, Status.COMPLETED),
    ]

    for write in writes:
        with pytest.raises(AttemptNeeded, match=job.job_id):
            write()

    assert registry.get(job.job_id) == job
    assert registry.complete(job.job_id, attempt=1).status == "completed"


def test_require_attempt_allows_cancel_and_writes_to_unclaimed_jobs(clock: FakeClock) -> None:
    registry = Registry(MemoryStore(clock), require_attempt=True)

    assert registry.cancel(_claimed(registry).job_id).status == "cancelled"
    assert registry.set_status(_register(registry), Status.COMPLETED).status == "completed"


@pytest.mark.parametrize("how", ["complete", "publish"])
def test_a_job_is_complete_when_its_artifacts_are_there(registry: Registry, tmp_path: Path, how: str) -> None:
    job = _claimed(registry, artifacts=["report.md"], workdir=str(tmp_path))

    def finish() -> Job:
        if how == "complete":
            return registry.complete(job.job_id, attempt=1, result="done")
        return registry.publish(job.job_id, event="completed", attempt=1)

    with pytest.raises(ArtifactMissing, match=r"report\.md is not there"):
        finish()
    assert registry.get(job.job_id) == job

    (tmp_path / "report.md").write_text("done")
    done = finish()
    assert (done.status, done.checked) == ("completed", True)

    (tmp_path / "report.md").unlink()
    assert finish() == done, "what has ended is not looked at again"


def test_a_job_with_nothing_to_check_is_completed_unchecked(registry: Registry) -> None:
    assert registry.complete(_claimed(registry).job_id, attempt=1).checked is False


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_cannot_be_stored_is_refused(registry: Registry, text: str) -> None:
    job = _claimed(registry)
    writes: list[Callable[[], object]] = [
        lambda: registry.complete(job.job_id, attempt=1, result=text),
        lambda: registry.fail(job.job_id, attempt=1, reason=text),
        lambda: registry.cancel(job.job_id, reason=text),
    ]
    for write in writes:
        with pytest.raises(BadInput):
            write()

    assert registry.get(job.job_id) == job


# -- the audit sink ----------------------------------------------------------------------------------------------------


def test_the_audit_sink_gets_every_write_and_every_refusal(registry: Registry, listener: Listener) -> None:
    job = _claimed(registry)
    assert listener.followed == 2
    registry.heartbeat(job.job_id, attempt=1)
    assert listener.followed == 3

    with pytest.raises(ClaimLost):
        registry.complete(job.job_id, attempt=7)

    assert listener.refusals == [(job.job_id, "complete")]
    assert listener.followed == 3


# -- waiting -------------------------------------------------------------------------------------------------------


def test_following_shows_each_job_now_and_after_each_change_until_all_have_ended(registry: Registry) -> None:
    one, two = _claimed(registry), _claimed(registry)
    registry.complete(two.job_id, attempt=1)

    seen = []
    for job in registry.follow([one.job_id, two.job_id], timeout=60):
        seen.append((job.job_id, str(job.status), job.last_seq))
        if job.job_id == one.job_id and job.last_seq < 2 and len(seen) > 1:
            registry.publish(one.job_id, event="progress", attempt=1)
        elif job.last_seq == 2:
            registry.complete(one.job_id, attempt=1)
        elif job.job_id == two.job_id:
            registry.publish(one.job_id, event="progress", attempt=1)

    assert seen == [
        (one.job_id, "running", 0),
        (two.job_id, "completed", 1),
        (one.job_id, "running", 1),
        (one.job_id, "running", 2),
        (one.job_id, "completed", 3),
    ]


def test_follow_settles_due_jobs(registry: Registry, clock: FakeClock) -> None:
    job = _claimed(registry)
    registry.heartbeat(job.job_id, attempt=1, lease_seconds=60)

    states = []
    for seen in registry.follow([job.job_id], timeout=60):
        states.append((str(seen.status), seen.losses))
        clock.advance(61)
        if seen.status == "pending":
            again = registry.pick(LABEL, owner="worker", lease_seconds=60)
            assert again is not None

    assert states[0] == ("running", 0)
    assert states[-1] == ("error", 3)
    assert registry.get(job.job_id).reason == "lost 3 times"


def test_following_for_too_long_ends_with_exit_code_5(registry: Registry) -> None:
    job_id = _register(registry)

    with pytest.raises(TimedOut, match="1 job") as ended:
        list(registry.follow([job_id], timeout=0.01))

    assert ended.value.exit_code == 5


def test_ended_jobs_are_not_waited_for(registry: Registry) -> None:
    job = _claimed(registry)
    registry.cancel(job.job_id)

    assert [str(seen.status) for seen in registry.follow([job.job_id])] == ["cancelled"]


class _Watched:
    """A store that signals when a caller is about to wait on it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asleep = threading.Event()

    def wait(self, offset: str, timeout: float, interest: Interest | None = None) -> bool:
        self.asleep.set()
        return self._store.wait(offset, timeout, interest)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_a_retry_of_a_signed_job_is_signed_with_a_token_of_its_own() -> None:
    registry = Registry(MemoryStore(FakeClock()))
    old = registry.register(prompt="p", agent="codex").job.job_id
    registry.store.keep_secrets(old, {"auth_token": "old"})
    registry.fail(old, reason="broken")

    new = registry.retry(old).job.job_id

    assert registry.store.secrets(new)["auth_token"] not in ("", "old")
    plain = registry.register(prompt="p", agent="codex").job.job_id
    registry.fail(plain, reason="broken")
    assert registry.store.secrets(registry.retry(plain).job.job_id) == {}


@pytest.mark.parametrize("workdir", ["/tmp/\udcff", "/tmp/a\0b", "/" + "a" * 4096], ids=["bytes", "NUL", "long"])
def test_a_working_directory_that_no_store_could_hold_is_refused(registry: Registry, workdir: str) -> None:
    with pytest.raises(BadInput, match="working directory"):
        registry.register(prompt="p", agent="a", workdir=workdir)
    assert list(registry.select(Query())) == []


@pytest.mark.parametrize("attempt", [True, False, 1.0, -1, 2**60, "1", float("nan")])
def test_an_attempt_that_is_no_count_changes_nothing(registry: Registry, attempt: Any) -> None:
    job = registry.register(prompt="p", agent=LABEL).job
    held = registry.pick(LABEL, owner="me")
    assert held is not None
    writes: list[Callable[[], object]] = [
        lambda: registry.complete(job.job_id, attempt=attempt),
        lambda: registry.fail(job.job_id, reason="r", attempt=attempt),
        lambda: registry.fail(job.job_id, reason="r", attempt=attempt, retryable=True),
        lambda: registry.heartbeat(job.job_id, attempt=attempt),
        lambda: registry.publish(job.job_id, event="progress", attempt=attempt),
        lambda: registry.release(job.job_id, attempt=attempt),
        lambda: registry.cancel(job.job_id, attempt=attempt),
        lambda: registry.set_status(job.job_id, Status.COMPLETED, attempt=attempt),
    ]
    for write in writes:
        with pytest.raises(BadInput, match="attempt must be"):
            write()
    assert registry.get(job.job_id) == held


@pytest.mark.parametrize("number", [True, "1", -1, 1e300, float("nan"), float("inf")])
def test_no_other_number_is_taken_for_another_kind(registry: Registry, number: Any) -> None:
    job = registry.register(prompt="p", agent=LABEL).job
    for name in ("depth", "due_ms", "timeout_sec", "idle_timeout_sec", "max_retries"):
        with pytest.raises(BadInput):
            registry.register(prompt="p", agent=LABEL, **{name: number})
    with pytest.raises(BadInput):
        registry.register(prompt="p", agent=LABEL, priority=number if number != -1 else -1001)
    for name in ("lease_seconds", "wait"):
        with pytest.raises(BadInput):
            registry.pick(LABEL, owner="me", **{name: number})
    with pytest.raises(BadInput):
        registry.heartbeat(job.job_id, lease_seconds=number)
    with pytest.raises(BadInput):
        registry.follow([job.job_id], timeout=number)
    assert [found.job_id for found in registry.select(Query())] == [job.job_id]
    assert registry.get(job.job_id) == job


def test_counts_of_very_many_jobs_are_kept_for_a_moment(
    registry: Registry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register(prompt="one", agent="codex")
    assert registry.counts() == {"pending": 1}
    registry.register(prompt="two", agent="codex")
    assert registry.counts() == {"pending": 2}, "few jobs are counted each time"

    monkeypatch.setattr("mam.registry.reading.MANY_JOBS", 2)
    assert registry.counts() == {"pending": 2}
    registry.register(prompt="three", agent="codex")
    assert registry.counts() == {"pending": 2}
    clock.advance(10)
    assert registry.counts() == {"pending": 3}

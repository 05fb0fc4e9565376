"""A worker whose machine lacks something: its jobs return unchanged, and it pauses before it claims again."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from mam.stores.memory import MemoryStore
from mam.stores.port import ClaimRequest
from mam.work import host_checks
from mam.work.claim import Claim
from mam.work.host_checks import Backoff, is_machine_error, reports_shortage
from mam.work.validator import trusted_validation
from tests.disks import fill
from tests.waiting import await_that
from tests.work.repositories import make_repository
from tests.work.worker_harness import LABEL, Harness

if TYPE_CHECKING:
    from pathlib import Path

    from mam.jobs.record import Job

HOME = "/state/work"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class TestRest:
    def test_it_grows_to_its_longest(self) -> None:
        clock, found = Clock(), []
        rest = Backoff(clock)
        for _ in range(9):
            found.append(rest.start())
            clock.now += found[-1]
            assert rest.remaining() == 0
        assert found == [1, 2, 4, 8, 16, 32, 60, 60, 60]

    def test_jobs_that_go_back_together_are_one_reason(self) -> None:
        clock = Clock()
        rest = Backoff(clock)
        rest.start()
        clock.now += 0.25
        assert [rest.start(), rest.start(), rest.remaining()] == [0.75] * 3
        clock.now += 0.75
        assert rest.start() == 2

    def test_a_job_that_begins_ends_it(self) -> None:
        rest = Backoff(Clock())
        rest.start()
        rest.reset()
        assert (rest.remaining(), rest.start()) == (0, 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "full"), True),
        (OSError(errno.EDQUOT, "full", f"{HOME}/x"), True),
        (OSError(errno.EROFS, "read-only", HOME), True),
        (OSError(errno.EIO, "broken", "sub"), True),
        (OSError(errno.EROFS, "read-only", "/project/.git"), False),
        (OSError(errno.ENOSPC, "full", f"{HOME}-of-another"), False),
        (OSError(errno.EMFILE, "too many", "/project/.git"), True),
        (OSError(errno.EAGAIN, "processes"), True),
        (MemoryError(), True),
        (OSError(errno.EACCES, "forbidden", HOME), False),
    ],
)
def test_errors_of_the_machine_are_recognized(error: OSError | MemoryError, expected: bool) -> None:
    assert is_machine_error(error, HOME) is expected


def test_a_full_disk_is_recognized_in_the_output_of_programs() -> None:
    assert reports_shortage(f"could not write index: {os.strerror(errno.ENOSPC)}")
    assert not reports_shortage(f"could not write index: {os.strerror(errno.EROFS)}")


def costs(job: Job) -> tuple[str, int, int]:
    return str(job.status), job.losses, job.retries


class TestAFullDisk:
    def test_no_job_is_lost_to_it(self, small_disk: Path) -> None:
        """At the second message, one rest is over and the next has begun: a worker that does not rest has claimed many
        more by then."""
        harness = Harness(MemoryStore(), small_disk)
        jobs = [harness.job("true") for _ in range(3)]
        ballast = fill(small_disk)
        with harness.at_work():
            await_that(lambda: len(given_back(harness)) >= 2, "it was not handed back")
            found = [harness.get(job_id) for job_id in jobs]
            assert {costs(job) for job in found} <= {("pending", 0, 0), ("running", 0, 0)}
            assert "No space left on device" in given_back(harness)[0]
            assert "the next claim is in 1 s" in given_back(harness)[0]
            ballast.unlink()
            ended = [harness.until(job_id) for job_id in jobs]
        assert [costs(job) for job in ended] == [("completed", 0, 0)] * 3
        assert sum(job.attempt for job in ended) <= 3 + 5

    def test_another_worker_has_it_at_once(
        self, small_disk: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A worker that backs off, for much longer than this test, stops when it is asked to."""
        monkeypatch.setattr(host_checks, "FIRST_SECONDS", 3600.0)
        monkeypatch.setattr(host_checks, "LONGEST_SECONDS", 3600.0)
        store = MemoryStore()
        full, sound = Harness(store, small_disk), Harness(store, tmp_path_factory.mktemp("sound"))
        fill(small_disk)
        with full.at_work():
            job_id = full.job("true")
            await_that(lambda: bool(given_back(full)), "it was not handed back")
            handed_back = full.get(job_id)
            assert "No space left on device" in (handed_back.reason or "")
            sound.drain()
        assert costs(sound.get(job_id)) == ("completed", 0, 0)
        assert (sound.get(job_id).attempt, sound.get(job_id).reason) == (2, None)

    def test_an_earlier_attempt_is_still_looked_for(self, small_disk: Path) -> None:
        """The record of what ran last stays, since nothing has run after it."""
        harness = Harness(MemoryStore(), small_disk)
        job_id = harness.job("true")
        run = {"attempt": 1, "process": {"agent": None, "keeper": None}}
        held = harness.registry.claim(ClaimRequest(label=LABEL, owner="another", supervised=True))
        assert held is not None
        Claim(harness.registry, held).started(run)
        Claim(harness.registry, held).hand_back()
        fill(small_disk)
        with harness.at_work():
            await_that(lambda: bool(given_back(harness)), "it was not handed back")
        assert harness.get(job_id).run == run

    def test_a_checkout_that_finds_no_room_waits_alone(
        self, small_disk: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """There may be room for other jobs, which do not wait for it."""
        repository = make_repository(tmp_path_factory.mktemp("project") / "repository")
        repository.commit("large", "x" * (2 << 20))
        harness = Harness(MemoryStore(), small_disk)
        large = harness.job("true", workdir=str(repository.path), workspace="worktree", priority=1)
        small = harness.job("true")
        harness.drain()
        assert (costs(harness.get(large)), harness.get(large).waiting_for) == (("waiting", 0, 0), "place")
        assert costs(harness.get(small)) == ("completed", 0, 0)

    def test_an_agent_that_has_run_is_judged(self, small_disk: Path) -> None:
        """Its script cannot be checked, and the effect of a second run is unknown."""
        harness = Harness(MemoryStore(), small_disk)
        script = small_disk / "check"
        script.write_text("exit 0")
        job = harness.ended(
            f"cat /dev/zero > {small_disk}/more; exit 0", validation=trusted_validation(str(script)), max_retries=0
        )
        assert (job.status, job.reason) == ("error", "the validation script could not be run: No space left on device")


class TestNoKeeper:
    def test_a_run_that_no_keeper_has_seen_goes_back(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The interpreter of a worker is gone, as after an upgrade, and with it every guardian."""
        harness = Harness(MemoryStore(), tmp_path)
        job_id = harness.job("true")
        monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))
        with harness.at_work():
            await_that(lambda: bool(given_back(harness)), "it was not handed back")
            monkeypatch.undo()
            assert costs(harness.until(job_id)) == ("completed", 0, 0)


def given_back(harness: Harness) -> list[str]:
    return [words for words in harness.said if "cannot run it now" in words]

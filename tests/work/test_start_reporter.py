"""The start of a job is reported once, before its agent's first report, and in one write with an immediate end."""

from __future__ import annotations

import sys
from threading import Semaphore, Thread
from typing import TYPE_CHECKING

import pytest

from mam.jobs.record import Job
from mam.jobs.worker_acts import Ending
from mam.stores.memory import MemoryStore
from mam.stores.port import ClaimRequest
from mam.work.claim import Claim, Reported, StartReporter
from tests.waiting import PATIENCE, Gate, await_that
from tests.work.worker_harness import LABEL, Harness

if TYPE_CHECKING:
    from pathlib import Path


MAM = f"{sys.executable} -m mam"


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(MemoryStore(), tmp_path)


def told(harness: Harness, job_id: str) -> list[str]:
    return [event["event"] for event in harness.store.events(job_id)]


def acts(harness: Harness, job_id: str) -> list[list[str]]:
    entries = [entry for entry in harness.store.entries(None) if entry.job_id == job_id]
    return [[line.get("payload", {}).get("event") or line["event"] for line in entry.lines] for entry in entries]


def test_start_and_end_of_a_short_job_are_one_act(harness: Harness) -> None:
    job = harness.ended("true")

    assert acts(harness, job.job_id)[-2:] == [["status_changed"], ["started", "status_changed", "completed"]]
    assert told(harness, job.job_id) == ["started", "completed"]
    assert job.run is not None
    assert (job.run["exit_code"], "process" in job.run) == (0, True)


def test_the_start_of_a_long_job_is_reported_while_it_runs(harness: Harness, gate: Gate) -> None:
    job_id = harness.job(gate.wait)
    with harness.at_work():
        await_that(lambda: told(harness, job_id) == ["started"], "it was not told that it runs")
        assert "process" in (harness.get(job_id).run or {})
        gate.open()
        harness.until(job_id)
    assert told(harness, job_id) == ["started", "completed"]


def test_no_event_of_an_agent_precedes_its_start(harness: Harness) -> None:
    job = harness.ended(f"{MAM} publish progress --detail here")

    assert told(harness, job.job_id) == ["started", "progress", "completed"]


def test_a_short_job_that_failed_reports_its_start(harness: Harness) -> None:
    job = harness.ended("exit 3")

    assert told(harness, job.job_id) == ["started", "error"]
    assert job.reason == "exit code 3"


def test_only_an_agent_that_ran_publishes_started(harness: Harness) -> None:
    job = harness.ended(
        "true", workdir=str(harness.place), validation={"script": "/x", "sha256": "y"}, artifacts=["no"]
    )

    assert told(harness, job.job_id) == ["started", "error"]
    missing = harness.ended("x", agent="command-that-is-not-there")
    assert told(harness, missing.job_id) == ["error"]


# -- the agent's word past its door ------------------------------------------------------------------------------------


@pytest.fixture
def held(harness: Harness) -> tuple[Job, Claim]:
    harness.job("x")
    job = harness.registry.claim(ClaimRequest(label=LABEL, owner="me", lease_seconds=60.0, supervised=True))
    assert job is not None
    return job, Claim(harness.registry, job)


def test_an_unreported_end_is_written_at_once(harness: Harness, held: tuple[Job, Claim]) -> None:

    job, claim = held
    assert isinstance(claim.finish(Ending(run={}), only_if_unreported=True), Job)
    assert harness.get(job.job_id).status == "completed"


def test_an_end_does_not_overwrite_an_unnoticed_report(harness: Harness, held: tuple[Job, Claim]) -> None:

    job, claim = held
    harness.registry.fail(job.job_id, reason="it is hopeless", attempt=1)
    found = claim.finish(Ending(run={}), only_if_unreported=True)
    assert isinstance(found, Reported)
    assert found.outcome["reason"] == "it is hopeless"
    assert harness.get(job.job_id).status == "running"


def test_a_report_past_the_door_counts(tmp_path: Path) -> None:
    """Said by another process, with the store itself: nothing that the worker can hear tells it so in time."""
    from mam.stores.files.store import FilesStore, create_files_store

    create_files_store(str(tmp_path / "jobs"))
    store = FilesStore(str(tmp_path / "jobs"))
    harness = Harness(store, tmp_path)
    say = f"env -u MAM_SOCKET {MAM} --store {tmp_path / 'jobs'}"
    done = harness.ended(f'{say} complete "$MAM_JOB_ID" --attempt 1 --result "by hand"; echo other words')
    failed = harness.ended(f'{say} fail "$MAM_JOB_ID" --attempt 1 --reason "no way"; true')
    store.close()
    assert (done.status, done.result) == ("completed", "by hand")
    assert (failed.status, failed.reason) == ("error", "no way")


def test_the_start_is_reported_once_by_the_first_thread() -> None:
    class Slow:
        count = 0

        def started(self, _run: object) -> None:
            for _ in range(8):
                assert arrived.acquire(timeout=PATIENCE)
            self.count += 1

    def report() -> None:
        arrived.release()
        start_reporter.report()

    arrived = Semaphore(0)
    slow = Slow()
    start_reporter = StartReporter(slow)  # type: ignore[arg-type]
    start_reporter.report()
    assert slow.count == 0, "there is nothing to tell yet"
    start_reporter.agent_started({})
    threads = [Thread(target=report) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (slow.count, start_reporter.unreported()) == (1, None)

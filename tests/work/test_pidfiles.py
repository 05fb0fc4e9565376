"""The processes of a run are on disk before the record names them, and the next attempt finds them, whatever was
killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from mam.machine.processes import ProcessId, identify, is_alive
from mam.stores.memory import MemoryStore
from mam.stores.port import ClaimRequest
from mam.work.process.pidfiles import FOLDER, LINE, PidFile, recorded_processes
from tests.disks import fill
from tests.unit.jobs import running
from tests.waiting import Gate, await_that
from tests.work.worker_harness import LABEL, Harness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Job

ELSEWHERE = {"boot_id": "another", "pid": 4000, "start_time": 7, "namespace": 0}
WRITER = """
import json, sys
from mam.work.process.pidfiles import PidFile
from tests.unit.jobs import running
PidFile(sys.argv[1]).add(running(), json.loads(sys.argv[2]))
"""


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(MemoryStore(), tmp_path)


@pytest.fixture
def stray() -> Iterator[subprocess.Popen[bytes]]:
    """What a worker, a keeper and a guardian that were killed together have left."""
    process = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def identity(process: subprocess.Popen[bytes]) -> ProcessId:
    found = identify(process.pid)
    assert found is not None
    return found


def run_of(process: ProcessId | None, host: str = "here") -> dict[str, Any]:
    return {"host": host, "process": {"agent": process and process.to_json(), "keeper": None}}


def files(work: Path) -> list[Path]:
    folder = work / FOLDER
    return sorted(folder.iterdir()) if folder.exists() else []


def next_attempt() -> Job:
    return running().replace(attempt=2)


def lost_once(harness: Harness, prompt: str) -> str:
    """A job whose first attempt is known to no record but its owner's."""
    job_id = harness.job(prompt)
    job = harness.registry.claim(ClaimRequest(label=LABEL, owner="gone", lease_seconds=60.0, supervised=True))
    assert job is not None
    harness.registry.release(job_id, attempt=1)
    return job_id


def left_by_another(work: Path, run: dict[str, Any]) -> Path:
    """The file of a worker that was killed."""
    work.mkdir(exist_ok=True)
    before = set(files(work))
    subprocess.run([sys.executable, "-c", WRITER, str(work), json.dumps(run)], check=True)
    [path] = set(files(work)) - before
    return path


# -- found -----------------------------------------------------------------------------------------------------------


def test_an_attempt_that_no_record_knows_is_ended_before_the_next(
    harness: Harness, stray: subprocess.Popen[bytes]
) -> None:
    job_id = lost_once(harness, "true")
    pid_file = PidFile(str(harness.folder / "work"))
    (harness.folder / "work").mkdir(0o700)
    agent = identity(stray)
    assert pid_file.add(harness.get(job_id), run_of(agent)) is not None
    harness.drain()

    assert not is_alive(agent)
    job = harness.get(job_id)
    assert (job.status, job.attempt, "earlier" in (job.run or {})) == ("completed", 2, False)


def test_a_running_job_is_found_and_one_that_has_ended_is_not(harness: Harness, gate: Gate) -> None:
    work, job_id = harness.folder / "work", harness.job(f"echo up > up; {gate.wait}")
    with harness.at_work():
        await_that((harness.place / "up").exists, "it does not run")
        later = harness.get(job_id).replace(attempt=2, run=None)
        await_that(lambda: bool(recorded_processes(later, str(work))), "its agent was quicker, and no trace came of it")
        [trace] = recorded_processes(later, str(work))
        agent = ProcessId.from_json(trace["agent"])
        assert agent is not None
        assert is_alive(agent)
        gate.open()
        harness.until(job_id)
        assert recorded_processes(harness.get(job_id).replace(attempt=2, run=None), str(work)) == []
    assert files(work) == [], "the worker has left its file"


def test_only_of_this_job_and_of_attempts_that_the_record_does_not_know(tmp_path: Path) -> None:
    pid_file, job = PidFile(str(tmp_path)), running()
    for number in (1, 2, 3, 4):
        pid_file.add(job.replace(attempt=number), run_of(None))
    pid_file.add(job.replace(job_id="abc12346", attempt=3), run_of(None))
    found = recorded_processes(job.replace(attempt=4, run={"attempt": 1}), str(tmp_path))
    assert [(trace["job_id"], trace["attempt"]) for trace in found] == [(job.job_id, 3), (job.job_id, 2)]


def test_of_every_worker_that_was_killed(tmp_path: Path, stray: subprocess.Popen[bytes]) -> None:
    left_by_another(tmp_path, run_of(identity(stray)))
    left_by_another(tmp_path, run_of(identity(stray), "there"))
    assert {trace["host"] for trace in recorded_processes(next_attempt(), str(tmp_path))} == {"here", "there"}


# -- the file ----------------------------------------------------------------------------------------------------------


def test_one_file_serves_any_number_of_jobs(tmp_path: Path) -> None:
    pid_file, job = PidFile(str(tmp_path)), running()
    for _ in range(100):
        number = pid_file.add(job, run_of(None))
        assert number == 1
        pid_file.remove(number, is_tree_gone=True)
    both = [pid_file.add(job.replace(attempt=attempt), run_of(None)) for attempt in (1, 2)]
    assert both == [1, 2]
    [path] = files(tmp_path)
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (3 * LINE, 0o600)
    assert len(recorded_processes(job.replace(attempt=9), str(tmp_path))) == 2


def test_the_pidfile_of_an_abandoned_run_remains_while_a_process_lives(
    tmp_path: Path, stray: subprocess.Popen[bytes]
) -> None:
    pid_file = PidFile(str(tmp_path))
    number = pid_file.add(running(), run_of(identity(stray)))
    assert number is not None
    pid_file.remove(number, is_tree_gone=False)
    assert pid_file.add(running(), run_of(None)) != number
    assert len(recorded_processes(next_attempt(), str(tmp_path))) == 2
    stray.kill()
    stray.wait()
    assert pid_file.add(running(), run_of(None)) == number


def test_a_worker_that_leaves_a_process_leaves_its_file(tmp_path: Path, stray: subprocess.Popen[bytes]) -> None:
    pid_file = PidFile(str(tmp_path))
    number = pid_file.add(running(), run_of(identity(stray)))
    assert number is not None
    pid_file.remove(number, is_tree_gone=False)
    pid_file.close()
    pid_file.close()
    assert len(recorded_processes(next_attempt(), str(tmp_path))) == 1


def test_a_removed_file_is_written_again(tmp_path: Path) -> None:
    pid_file, job = PidFile(str(tmp_path)), running()
    pid_file.add(job, run_of(None))
    [path] = files(tmp_path)
    path.unlink()
    assert pid_file.add(job.replace(attempt=2), run_of(None)) == 2
    assert len(recorded_processes(job.replace(attempt=3), str(tmp_path))) == 2


@pytest.mark.parametrize("cut", [0, 1, 30, LINE // 2])
def test_half_a_line_counts_for_nothing(tmp_path: Path, cut: int) -> None:
    """As a worker leaves it that is killed while it writes."""
    pid_file = PidFile(str(tmp_path))
    pid_file.add(running(), run_of(identify(os.getpid())))
    pid_file.add(running(), run_of(None, "whole"))
    [path] = files(tmp_path)
    content = path.read_bytes()
    text = content[LINE : 2 * LINE].rstrip()
    path.write_bytes(content[:LINE] + text[: min(cut, len(text) - 1)].ljust(LINE - 1) + b"\n" + content[2 * LINE :])
    assert [trace["host"] for trace in recorded_processes(next_attempt(), str(tmp_path))] == ["whole"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]\n7\n", b'"x"', b"\xff" * 100, b"[" * 100_000, b"\n" * (2 << 20)])
def test_a_damaged_file_is_ignored(harness: Harness, content: bytes) -> None:
    work = harness.folder / "work"
    (work / FOLDER).mkdir(parents=True, mode=0o700)
    os.chmod(work, 0o700)
    (work / FOLDER / "spoilt").write_bytes(content)
    os.mkfifo(work / FOLDER / "pipe")
    os.symlink("/dev/zero", work / FOLDER / "link")
    (work / FOLDER / "directory").mkdir()
    job_id = lost_once(harness, "true")
    harness.drain()

    assert harness.get(job_id).status == "completed"


@pytest.mark.parametrize("trace", [{"agent": 7}, {"attempt": "1"}, {"attempt": True}, {"job_id": ["x"]}])
def test_an_impossible_line_is_ignored(harness: Harness, trace: dict[str, Any]) -> None:
    work, job_id = harness.folder / "work", lost_once(harness, "true")
    (work / FOLDER).mkdir(parents=True, mode=0o700)
    os.chmod(work, 0o700)
    (work / FOLDER / "odd").write_text(json.dumps({"job_id": job_id, "attempt": 1, "host": "here", **trace}))
    harness.drain()

    assert harness.get(job_id).status == "completed"


def test_what_does_not_fit_into_a_line_is_not_written(tmp_path: Path) -> None:
    pid_file = PidFile(str(tmp_path))
    assert pid_file.add(running(), run_of(None, "h" * LINE)) is None
    assert pid_file.add(running(), run_of(None, "h" * 64)) == 1, "the line of the other one is free"


def test_a_pid_file_that_cannot_be_written_stops_no_job(tmp_path: Path, small_disk: Path) -> None:
    ballast = fill(small_disk)
    pid_file = PidFile(str(small_disk))
    assert pid_file.add(running(), run_of(None)) is None
    assert files(small_disk) == []
    ballast.unlink()
    assert pid_file.add(running(), run_of(None)) == 1
    assert len(recorded_processes(next_attempt(), str(small_disk))) == 1
    (small_disk / "other").mkdir()
    (small_disk / "other" / FOLDER).write_text("in the way")
    assert PidFile(str(small_disk / "other")).add(running(), run_of(None)) is None


def test_without_a_pid_line_the_start_is_reported_at_once(harness: Harness) -> None:
    (harness.folder / "work").mkdir(0o700)
    (harness.folder / "work" / FOLDER).write_text("in the way")
    job = harness.ended("true")
    entries = [entry for entry in harness.store.entries(None) if entry.job_id == job.job_id]
    assert len(entries) == 4, "registered, claimed, begun and ended"


# -- swept -------------------------------------------------------------------------------------------------------------


class TestSwept:
    """By the next worker that runs something."""

    def is_swept(self, work: Path, path: Path) -> bool:
        PidFile(str(work)).add(running(job_id="another1"), run_of(None))
        return not path.exists()

    def test_when_all_processes_are_gone(self, tmp_path: Path, stray: subprocess.Popen[bytes]) -> None:
        path = left_by_another(tmp_path, run_of(identity(stray)))
        assert not self.is_swept(tmp_path, path)
        stray.kill()
        stray.wait()
        assert self.is_swept(tmp_path, path)

    def test_the_pid_file_of_a_live_worker_stays(self, tmp_path: Path) -> None:
        PidFile(str(tmp_path)).add(running(), run_of(None))
        [path] = files(tmp_path)
        assert not self.is_swept(tmp_path, path)

    @pytest.mark.parametrize(("host", "swept"), [("another", False), (os.uname().nodename, True)])
    def test_a_pid_file_of_an_earlier_boot_is_removed(self, tmp_path: Path, host: str, swept: bool) -> None:
        path = left_by_another(tmp_path, run_of(None))
        path.write_text(json.dumps({"host": host, "worker": ELSEWHERE}) + "\n")
        assert self.is_swept(tmp_path, path) is swept

    def test_a_pid_file_of_another_container_stays(self, tmp_path: Path) -> None:
        me = identify(os.getpid())
        assert me is not None
        there = me.replace(pid=4_000_000, namespace=7)
        path = left_by_another(tmp_path, run_of(None))
        path.write_text(json.dumps({"host": "container", "worker": there.to_json()}) + "\n")
        assert not self.is_swept(tmp_path, path)

    def test_one_that_is_just_being_made(self, tmp_path: Path) -> None:
        (tmp_path / FOLDER).mkdir()
        path = tmp_path / FOLDER / "new"
        path.touch()
        assert not self.is_swept(tmp_path, path)

    def test_after_a_month_without_a_change(self, tmp_path: Path) -> None:
        path = left_by_another(tmp_path, run_of(None))
        path.write_text(json.dumps({"host": "another", "worker": ELSEWHERE}) + "\n")
        os.utime(path, (0, time.time() - 31 * 86_400))
        assert self.is_swept(tmp_path, path)

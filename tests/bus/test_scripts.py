"""publish_event.py and job_subscriber.py by their old names and options."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.bus.following import wait_for_stdout
from tests.cli.command import Mam, Ran, finish

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def run_script(mam: Mam, script: str, *words: str, code: str | None = None) -> Ran:
    """Runs an old script, or a program that imports the scripts."""
    argv = ["-c", code] if code is not None else [str(SCRIPTS / script), *words]
    ran = subprocess.run(
        [sys.executable, *argv], capture_output=True, cwd=mam.here, env={**mam.env, "PYTHONPATH": str(SCRIPTS)},
        timeout=60,
    )  # fmt: skip
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode())


def _subscribe(mam: Mam, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPTS / "job_subscriber.py"), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=mam.here, env=mam.env,
    )  # fmt: skip


def test_an_event_is_published_and_received(mam: Mam) -> None:
    job = mam.register()
    subscriber = _subscribe(mam, "--job", job, "--timeout", "60", "--idle-timeout", "60")

    assert run_script(mam, "publish_event.py", "--job", job, "--event", "started").line == "1"
    told = run_script(
        mam, "publish_event.py", "--job", job, "--event", "progress", "--detail", "half", "--data", '{"p": 5}'
    )
    assert told.line == "2"
    assert run_script(mam, "publish_event.py", "--job", job, "--event", "completed").line == "3"
    ran = finish(subscriber)

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line.split()[1:4] for line in lines] == [
        [f"job={job}", "seq=1", "started"], [f"job={job}", "seq=2", "progress"], [f"job={job}", "seq=3", "completed"],
    ]  # fmt: skip
    assert lines[1].endswith(f" seq=2 {'progress':<20} half")
    assert lines[1].split()[0].endswith("Z")
    log = mam.here / ".mam" / "delegate_job_logs" / job / "events.ndjson"
    lines = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert lines.count("received") == 3
    assert lines.count("published") == 3


def test_the_registry_directory_can_be_named(mam: Mam, tmp_path: Path) -> None:
    directory = str(tmp_path / "elsewhere")
    job = mam("register", "x", "--agent", "a", "--registry-dir", directory).line

    assert (
        run_script(mam, "publish_event.py", "--job", job, "--event", "error", "--registry-dir", directory).line == "1"
    )
    assert run_script(mam, "job_subscriber.py", "--job", job, "--registry-dir", directory).code == 1


def test_an_error_is_one_line(mam: Mam) -> None:
    mam.register()

    run_script(mam, "publish_event.py", "--job", "nosuchjob", "--event", "started").failed(1, "nosuchjob")
    run_script(mam, "publish_event.py", "--job", "nosuchjob", "--event", "exploded").failed(2, "exploded")
    run_script(mam, "job_subscriber.py", "--job", "nosuchjob").failed(1, "nosuchjob")


def test_the_exit_code_is_the_outcome(mam: Mam) -> None:
    """0 all completed, 1 one did not, 2 timed out. `mam subscribe` has other codes."""
    good, bad, gone, idle = (mam.register() for _ in range(4))
    mam("status", good, "--set", "completed")
    mam("status", bad, "--set", "error")
    mam("cancel", gone)

    assert run_script(mam, "job_subscriber.py", "--job", good).code == 0
    assert run_script(mam, "job_subscriber.py", "--job", good, "--job", bad).code == 1
    assert run_script(mam, "job_subscriber.py", "--job", gone).code == 1
    assert run_script(mam, "job_subscriber.py", "--job", idle, "--timeout", "0.2").code == 2
    assert run_script(mam, "job_subscriber.py", "--job", bad, "--job", idle, "--timeout", "0.2").code == 2
    assert mam("subscribe", bad).code == 7
    assert mam("subscribe", gone).code == 8
    assert mam("subscribe", idle, "--timeout", "0.2").code == 5


def test_the_jobs_own_idle_timeout_ends_one_that_has_received_nothing(mam: Mam) -> None:
    job = mam.register("x", "--idle-timeout", "1")

    ran = run_script(mam, "job_subscriber.py", "--job", job)

    assert (ran.code, ran.out) == (2, "")
    assert "said nothing" in ran.stderr


def test_it_waits_for_all_jobs_that_are_open(mam: Mam) -> None:
    ended, waiting, running = mam.register(), mam.register("x", "--at", "+1h"), mam.register()
    mam("status", ended, "--set", "error")
    mam("publish", running, "started")
    subscriber = _subscribe(mam, "--wait-any")
    wait_for_stdout(subscriber, "started")

    for job in (waiting, running):
        mam("publish", job, "completed") if job == running else mam("cancel", job)
    ran = finish(subscriber)

    assert ran.code == 1, "one was cancelled"
    assert [line.split()[1] for line in ran.out.splitlines()] == [f"job={waiting}", f"job={running}"]
    none = run_script(mam, "job_subscriber.py", "--wait-any")
    assert (none.code, none.out) == (0, "")
    assert "no job" in none.stderr


def test_it_takes_jobs_or_all_of_them(mam: Mam) -> None:
    job = mam.register()

    run_script(mam, "job_subscriber.py").failed(2, "--wait-any")
    run_script(mam, "job_subscriber.py", "--job", job, "--wait-any").failed(2, "--wait-any")

"""publish_event.py and job_subscriber.py by their old names and options."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.command import Mam, Ran, finish

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def _run(mam: Mam, script: str, *words: str) -> Ran:
    ran = subprocess.run(
        [sys.executable, str(SCRIPTS / script), *words], capture_output=True, cwd=mam.here, env=mam.env, timeout=60
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode())


def test_an_event_is_published_and_received(mam: Mam) -> None:
    job = mam.register()
    subscriber = subprocess.Popen(
        [sys.executable, str(SCRIPTS / "job_subscriber.py"), "--job", job, "--timeout", "60", "--idle-timeout", "60"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=mam.here, env=mam.env,
    )  # fmt: skip

    assert _run(mam, "publish_event.py", "--job", job, "--event", "started").line == "1"
    told = _run(mam, "publish_event.py", "--job", job, "--event", "progress", "--detail", "half", "--data", '{"p": 5}')
    assert told.line == "2"
    assert _run(mam, "publish_event.py", "--job", job, "--event", "completed").line == "3"
    ran = finish(subscriber)

    assert ran.code == 0
    assert [line.split("\t")[1:3] for line in ran.out.splitlines()] == [
        ["1", "started"], ["2", "progress"], ["3", "completed"],
    ]  # fmt: skip
    log = mam.here / ".mam" / "delegate_job_logs" / job / "events.ndjson"
    lines = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert lines.count("received") == 3
    assert lines.count("published") == 3


def test_the_registry_directory_can_be_named(mam: Mam, tmp_path: Path) -> None:
    directory = str(tmp_path / "elsewhere")
    job = mam("register", "x", "--agent", "a", "--registry-dir", directory).line

    assert _run(mam, "publish_event.py", "--job", job, "--event", "error", "--registry-dir", directory).line == "1"
    assert _run(mam, "job_subscriber.py", "--job", job, "--registry-dir", directory).code == 7


def test_an_error_is_one_line(mam: Mam) -> None:
    mam.register()

    _run(mam, "publish_event.py", "--job", "nosuchjob", "--event", "started").failed(1, "nosuchjob")
    _run(mam, "publish_event.py", "--job", "nosuchjob", "--event", "exploded").failed(2, "exploded")
    _run(mam, "job_subscriber.py", "--job", "nosuchjob").failed(1, "nosuchjob")

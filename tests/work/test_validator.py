"""The check of what an agent left: files without links, and a validation script identified by its content."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mam.artifacts import DIGEST_LIMIT
from mam.errors import BadInput
from mam.jobs.record import Job
from mam.machine.processes import is_alive
from mam.work.process.runner import GuardianClient, Run
from mam.work.validator import OUTPUT_LIMIT, check, trusted_validation
from tests.unit.jobs import running
from tests.work.support import PidPipe, await_gone


class Bench:
    """A workspace, a private directory, and a script somewhere else."""

    def __init__(self, root: Path, guardian: GuardianClient) -> None:
        self.place, self.script = root / "place", root / "trusted/check.sh"
        self.private = root / "private" / "abc12345.1"
        self.place.mkdir()
        self.private.parent.mkdir(mode=0o700)
        self.script.parent.mkdir()
        self._guardian = guardian

    def job(self, script: str | bytes | None = None, *artifacts: str, **choices: Any) -> Job:
        validation = None
        if script is not None:
            self.script.write_bytes(script.encode() if isinstance(script, str) else script)
            validation = {**trusted_validation(str(self.script)), **choices}
        return running(artifacts=artifacts, validation=validation, workdir=str(self.place))

    def check(self, job: Job, **more: Any) -> dict[str, Any]:
        return check(job, str(self.place), self._guardian, str(self.private), "mark", **more)


@pytest.fixture
def bench(tmp_path: Path, guardian: GuardianClient) -> Bench:
    return Bench(tmp_path, guardian)


# -- artifacts -------------------------------------------------------------------------------------------------------


def test_nothing_promised_is_nothing_missing(bench: Bench) -> None:
    assert bench.check(bench.job()) == {"artifacts": [], "script": None, "problem": None}


def test_what_was_found_is_kept_by_size_and_hash(bench: Bench) -> None:
    (bench.place / "out").mkdir()
    (bench.place / "out/report.md").write_text("done")
    (bench.place / "same.md").hardlink_to(bench.place / "out/report.md")
    digest = hashlib.sha256(b"done").hexdigest()
    checks = bench.check(bench.job(None, "out/report.md", "same.md"))
    assert checks["problem"] is None
    assert checks["artifacts"] == [
        {"path": "out/report.md", "size": 4, "sha256": digest},
        {"path": "same.md", "size": 4, "sha256": digest},
    ]


def test_a_huge_artifact_is_not_read(bench: Bench) -> None:
    with open(bench.place / "huge", "wb") as file:
        file.truncate(DIGEST_LIMIT + 1)
    assert bench.check(bench.job(None, "huge"))["artifacts"] == [
        {"path": "huge", "size": DIGEST_LIMIT + 1, "sha256": None}
    ]


@pytest.mark.parametrize(
    ("artifact", "word"),
    [
        ("gone.md", "not there"),
        ("empty.md", "empty"),
        ("link.md", "link"),
        ("dangling.md", "link"),
        ("pipe", "regular file"),
        ("folder", "regular file"),
        ("aside/file", "cannot be reached: 'aside' is a link"),
        ("up/secret", "cannot be reached: 'up' is a link"),
        ("empty.md/file", "cannot be reached: 'empty.md' is not a directory"),
        ("socket", "regular file"),
    ],
)
def test_what_is_not_a_file_of_its_own_is_a_problem(bench: Bench, artifact: str, word: str) -> None:
    (bench.place.parent / "secret").write_text("not yours")
    (bench.place / "folder").mkdir()
    (bench.place / "folder/file").write_text("x")
    (bench.place / "empty.md").touch()
    (bench.place / "link.md").symlink_to(bench.place.parent / "secret")
    (bench.place / "dangling.md").symlink_to("nowhere")
    (bench.place / "aside").symlink_to("folder")
    (bench.place / "up").symlink_to(bench.place.parent)
    os.mkfifo(bench.place / "pipe")
    os.mknod(bench.place / "socket", 0o140600)
    checks = bench.check(bench.job("exit 0", "folder/file", artifact))
    assert artifact in checks["problem"]
    assert word in checks["problem"]
    assert [found["path"] for found in checks["artifacts"]] == ["folder/file"]
    assert checks["script"] is None, "the script has nothing to say about work that is not there"


def test_an_absolute_path_of_an_old_record_must_lie_in_the_workspace(bench: Bench) -> None:
    (bench.place / "report.md").write_text("x")
    (bench.place.parent / "outside.md").write_text("x")
    inside, outside = str(bench.place / "report.md"), str(bench.place.parent / "outside.md")
    job = bench.job()
    assert bench.check(job.replace(expected_artifacts=[inside]))["problem"] is None
    assert "not a path inside" in bench.check(job.replace(expected_artifacts=[outside]))["problem"]
    assert "not a path inside" in bench.check(job.replace(expected_artifacts=["../outside.md"]))["problem"]


def test_a_workspace_that_became_a_link_is_a_problem(bench: Bench) -> None:
    elsewhere = bench.place.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "report.md").write_text("somebody else's")
    bench.place.rmdir()
    bench.place.symlink_to(elsewhere)
    assert "has become a link" in bench.check(bench.job(None, "report.md"))["problem"]


def test_a_workspace_that_vanished_is_a_problem(bench: Bench) -> None:
    bench.place.rmdir()
    assert "cannot be looked for" in bench.check(bench.job(None, "report.md"))["problem"]
    assert "cannot work in" in bench.check(bench.job("exit 0"))["problem"]


# -- the script ------------------------------------------------------------------------------------------------------


def test_a_script_that_succeeds_is_recorded(bench: Bench) -> None:
    job = bench.job("#!/bin/sh\necho looked; echo aside >&2; pwd\n")
    checks = bench.check(job)
    assert checks["problem"] is None
    assert checks["script"]["exit_code"] == 0
    assert checks["script"]["sha256"] == hashlib.sha256(bench.script.read_bytes()).hexdigest()
    assert sorted(checks["script"]["output"].splitlines()) == sorted(["looked", "aside", str(bench.place)])
    assert checks["script"]["seconds"] >= 0
    assert os.listdir(bench.private.parent) == []


@pytest.mark.parametrize(
    ("script", "word", "code"),
    [
        ("exit 3", "ended with 3", 3),
        ("kill -9 $$", "signal 9", None),
        ("#!/nowhere/at/all\n", "could not be run", None),
        (b"\x7fELF\0\0\0garbage", "could not be run", None),
    ],
)
def test_a_script_that_does_not(bench: Bench, script: str | bytes, word: str, code: int | None) -> None:
    checks = bench.check(bench.job(script))
    assert word in checks["problem"]
    assert checks["script"]["exit_code"] == code
    assert os.listdir(bench.private.parent) == []


def test_its_environment_is_clean(bench: Bench) -> None:
    environ = {
        "PATH": f".:/usr/bin::relative/bin:/bin:{bench.place}", "HOME": "/home/somebody", "LANG": "C.UTF-8",
        "LD_PRELOAD": "/evil.so", "ENV": "/evil", "BASH_ENV": "/evil", "PYTHONPATH": "/evil", "MAM_STORE": "secret",
        "MAM_SOCKET": "/door", "MAM_STORE_MARK": "another", "GIT_DIR": "/evil",
    }  # fmt: skip
    script = f"#!{sys.executable} -IS\nimport os\nfor name in os.environ: print(name + '=' + os.environ[name])\n"
    checks = bench.check(bench.job(script), environ=environ)
    assert set(checks["script"]["output"].split()) == {
        f"PATH=/usr/bin:/bin:{bench.place}", "HOME=/home/somebody", "LANG=C.UTF-8", "MAM_JOB_ID=abc12345",
        "MAM_ATTEMPT=1", "MAM_STORE_MARK=mark",
    }  # fmt: skip


def test_its_stdin_is_empty_and_nothing_is_inherited(bench: Bench) -> None:
    checks = bench.check(bench.job("cat; ls /proc/self/fd | wc -l"))
    assert checks["script"]["output"].split() == ["4"], "0, 1, 2 and the directory that ls reads"


def test_a_script_that_changed_is_not_run(bench: Bench, tmp_path: Path) -> None:
    job = bench.job("exit 0")
    bench.script.write_text(f"touch {tmp_path}/canary; exit 0")
    checks = bench.check(job)
    assert "has changed since it was trusted" in checks["problem"]
    assert checks["script"] is None
    assert not (tmp_path / "canary").exists()


def test_mam_runs_the_script_as_it_was_read(bench: Bench) -> None:
    """Between the look and the run the path may become anything: here it does so while the script runs."""
    job = bench.job(f"echo 'exit 9' > '{bench.script}'\necho still here\nexit 0\n")
    assert bench.check(job)["script"]["output"] == "still here\n"
    assert bench.script.read_text() == "exit 9\n"


@pytest.mark.parametrize("kind", ["gone", "folder", "pipe", "empty"])
def test_a_script_that_is_no_script_any_more(bench: Bench, kind: str) -> None:
    job = bench.job("exit 0")
    bench.script.unlink()
    match kind:
        case "folder":
            bench.script.mkdir()
        case "pipe":
            os.mkfifo(bench.script)
        case "empty":
            bench.script.touch()
    checks = bench.check(job)
    assert str(bench.script) in checks["problem"]
    assert checks["script"] is None


@pytest.mark.parametrize(
    "validation", [{}, {"script": "relative", "sha256": "0"}, {"script": 1, "sha256": 2}, {"script": "/bin/true"}]
)
def test_a_record_that_names_no_hash_runs_nothing(bench: Bench, validation: dict[str, Any]) -> None:
    assert "not named by path and hash" in bench.check(bench.job().replace(validation=validation))["problem"]


def test_a_script_that_hangs_is_ended(bench: Bench, pids: PidPipe) -> None:
    job = bench.job(f"trap '' TERM\necho $$ > {pids.path}\nwhile :; do sleep 60; done\n", timeout_sec=1)
    checks = bench.check(job)
    assert "not done within 1 s" in checks["problem"]
    assert checks["script"]["exit_code"] is None


def test_a_script_that_forks_leaves_no_process(bench: Bench, tmp_path: Path) -> None:
    """Out of the group and out of the session, and its parent gone."""
    pids = tmp_path / "pids"
    script = (
        f"#!{sys.executable} -IS\n"
        "import os, time\n"
        f"out = open({str(pids)!r}, 'a')\n"
        "for depth in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork():\n"
        "            os._exit(0)\n"
        "        assert 'private/abc12345.1.validation' in open('/proc/self/cmdline').read()\n"
        "        out.write(f'{os.getpid()}\\n'); out.flush()\n"
        "        time.sleep(600)\n"
        "while len(open(out.name).read().split()) < 3:\n"
        "    time.sleep(0.001)\n"
    )
    checks = bench.check(bench.job(script))
    assert checks["problem"] is None
    left = [int(pid) for pid in pids.read_text().split()]
    assert len(left) == 3
    assert not [pid for pid in left if str(bench.private) in _command_of(pid)]


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_the_end_of_long_output_is_kept(bench: Bench) -> None:
    script = "head -c 104857600 /dev/zero | tr '\\0' x; echo; echo 'the end'"
    output = bench.check(bench.job(script))["script"]["output"]
    assert output.endswith("x\nthe end\n")
    assert OUTPUT_LIMIT // 2 < len(output) <= OUTPUT_LIMIT
    assert os.listdir(bench.private.parent) == []


def test_output_that_is_no_text_becomes_text(bench: Bench) -> None:
    output = bench.check(bench.job("printf 'a\\377\\000\\033[31mb'"))["script"]["output"]
    assert output == "a\ufffd\ufffd\x1b[31mb"
    output.encode()


def test_it_is_ended_with_its_worker(bench: Bench, pids: PidPipe) -> None:
    """The worker can stop it, as it does on a cancel."""
    job = bench.job(f"echo $$ > {pids.path}\nsleep 600\n")
    processes: list[Any] = []

    class Canceller:
        def keep_alive_seconds(self) -> float:
            return 600.0

        def attach(self, run: Run) -> None:
            (process,) = pids.processes(1)
            assert is_alive(process)
            run.stop(0.0, "cancelled")
            processes.append(process)

    assert "signal" in bench.check(job, watcher=Canceller())["problem"]
    await_gone(processes)


def test_it_is_ended_when_its_worker_stops_at_its_start(bench: Bench, pids: PidPipe) -> None:
    job = bench.job(f"echo $$ > {pids.path}\nsleep 600\n")

    class Stopped:
        def keep_alive_seconds(self) -> float:
            return 0.2

        def attach(self, run: Run) -> None:
            await_gone(pids.processes(1))

    assert "signal" in bench.check(job, watcher=Stopped())["problem"]


def test_the_leftover_of_a_killed_worker_is_harmless(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    Path(f"{bench.private}.validation").symlink_to(tmp_path / "precious")
    Path(f"{bench.private}.validation-output").write_text("of the last time")
    Path(f"{bench.private}.validation-output.more").mkdir()
    Path(f"{bench.private}.validation-output.more/00000000000000000016").write_text("and more of it")
    checks = bench.check(bench.job("echo now"))
    assert checks["script"]["output"] == "now\n"
    assert (tmp_path / "precious").read_text() == "precious"


# -- trust -----------------------------------------------------------------------------------------------------------


def test_naming_a_script_trusts_its_content(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.script.write_text("exit 0")
    monkeypatch.chdir(bench.script.parent)
    digest = hashlib.sha256(b"exit 0").hexdigest()
    assert trusted_validation("check.sh") == {"script": str(bench.script), "sha256": digest}
    assert trusted_validation("check.sh", 9)["timeout_sec"] == 9


@pytest.mark.parametrize("name", ["gone", ".", "pipe", "empty", "a\0b"])
def test_only_a_script_can_be_trusted(bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(bench.script.parent)
    os.mkfifo("pipe")
    Path("empty").touch()
    with pytest.raises(BadInput, match="validation script"):
        trusted_validation(name)

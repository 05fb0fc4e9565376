"""`mam run` follows its job, Ctrl-C detaches it, and it never runs prose as a script."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.command import Mam, finish
from tests.waiting import await_that
from tests.work.support import await_gone

if TYPE_CHECKING:
    from tests.work.support import PidPipe
from tests.work.worker_commands import ended, heard, mam_fixture, no_process_left, plain_fixture, workers_of

__all__ = ["mam_fixture", "no_process_left", "plain_fixture"]


class TestRun:
    def test_run_prints_the_output_and_exits_with_the_outcome(self, mam: Mam) -> None:
        ran = mam("run", "--", "sh", "-c", "echo out; exit 0")
        assert (ran.code, ran.out) == (0, "out\n")
        ran = mam("run", "--", "sh", "-c", "echo half; exit 3")
        assert (ran.code, ran.out) == (7, "half\n")
        assert "exit code 3" in ran.stderr

    def test_a_detached_run_returns_at_once(self, mam: Mam) -> None:
        job = mam("run", "-d", "--", "echo", "later").line
        assert ended(mam, job)["result"] == "later"
        assert mam("output", job).out == "later\n"

    def test_output_that_an_older_version_has_kept(self, plain: Mam) -> None:
        """It had a directory for each attempt, and one for its output in that."""
        job = plain("run", "-d", "--", "echo", "later").line
        ended(plain, job)
        [log] = Path(plain.env["HOME"]).rglob(f"{job}.1.output")
        older = log.parent / job / "1" / "output"
        older.mkdir(parents=True)
        log.rename(older / ("0" * 20))
        assert plain("output", job).out == "later\n"
        assert plain("output", job, "--follow").out == "later\n"
        assert plain("output", job, "--json").json == {"kind": "line", "text": "later"}
        assert plain("output", job, "--attempt", "2").code == 1

    def test_ctrl_c_detaches_and_a_second_one_cancels(self, mam: Mam, pids: PidPipe) -> None:
        for again, code, status in ((False, 130, "running"), (True, 8, "cancelled")):
            process = mam.start("run", "--", "sh", "-c", f"echo $$ > {pids.path}; exec sleep 1000")
            agent = pids.processes(1)
            process.send_signal(signal.SIGINT)
            if again:
                heard(process, b"detached")
                process.send_signal(signal.SIGINT)
            ran = finish(process)
            assert ran.code == code, ran.stderr
            job = mam("list", "--json").json[0]
            assert job["status"] == status
            mam("cancel", job["job_id"])
            await_gone(agent)

    def test_a_worker_that_is_killed_is_replaced(self, plain: Mam, pids: PidPipe) -> None:
        """No other worker would take the job, and the user would wait for ever."""
        process = plain.start("run", "--", "sh", "-c", f"echo $$ > {pids.path}; exec sleep 1000")
        agent = pids.processes(1)
        (worker,) = workers_of(process.pid)
        os.kill(worker, signal.SIGKILL)
        await_gone(agent)
        await_that(lambda: workers_of(process.pid) not in ([], [worker]), "no new worker was started")
        (job,) = plain("list", "--json").json
        plain("cancel", job["job_id"])
        assert finish(process).code == 8

    def test_a_cancelled_run_exits_with_8(self, mam: Mam, pids: PidPipe) -> None:
        process = mam.start("run", "--", "sh", "-c", f"echo $$ > {pids.path}; exec sleep 1000")
        agent = pids.processes(1)
        (job,) = mam("list", "--json").json
        mam("cancel", job["job_id"])
        assert finish(process).code == 8
        await_gone(agent)

    def test_a_terminal_is_kept_safe(self, plain: Mam) -> None:
        nasty = r"\033]0;title\007\033[2J\033[31mred\033[0m\033[>4;2m\033]52;c;aGk=\033\\\\x\200\n"
        job = plain("run", "-d", "--", "printf", nasty).line
        ended(plain, job)
        shown = plain.on_terminal("output", job).stdout
        assert re.findall(rb"\x1b[^m]*m", shown) == [b"\x1b[31m", b"\x1b[0m"]
        assert b"title" not in shown
        assert b"red" in shown
        assert plain("output", job).stdout.startswith(b"\x1b]0;title\x07\x1b[2J")

    def test_prose_is_never_a_script(self, plain: Mam) -> None:
        plain.env["PATH"] = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"
        plain("run", "touch me").failed(2, "--agent")
        plain("run", "touch", "me").failed(2, '"touch me"', "follows --")
        assert list(plain.here.iterdir()) == []

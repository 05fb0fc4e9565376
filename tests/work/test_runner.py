"""One run: what the agent gets, how it ends, and what happens without the worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import is_alive
from mam.work.output_log import read
from mam.work.process.messages import Ended, Output, Started
from mam.work.process.runner import GuardianClient, Plan
from tests.waiting import await_that
from tests.work.support import (
    ENV,
    PATIENCE,
    await_gone,
    descriptors,
    failure,
    finish,
    python,
    shell,
    text_in,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.work.support import PidPipe


class TestTheAgentIsGiven:
    def test_its_arguments_as_they_are(self, guardian: GuardianClient, log: str) -> None:
        wild = ["a b", "$HOME", "`x`", "'\"\\", "*", "ü\udcff", "", "line\nline"]
        script = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
        assert finish(guardian.start(python(script, *wild), log)).exit_code == 0
        assert b"".join(read(log)) == b"|".join(map(os.fsencode, wild))

    def test_the_agent_gets_its_environment_and_nothing_else(
        self, guardian: GuardianClient, log: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MQTT_PASSWORD", "geheim")
        plan = Plan(argv=("env", "-0"), env={**ENV, "MAM_JOB_ID": "j", "WILD": "a=b\nü\udcff"}, cwd="/")
        assert finish(guardian.start(plan, log)).exit_code == 0
        given = b"".join(read(log)).rstrip(b"\0").split(b"\0")
        assert sorted(given) == [b"MAM_JOB_ID=j", b"PATH=/usr/bin:/bin", "WILD=a=b\nü".encode() + b"\xff"]

    def test_the_guardian_has_no_secret_of_the_worker(
        self, guardian: GuardianClient, log: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MQTT_PASSWORD", "geheim")
        run = guardian.start(shell("exec sleep 1000", "also-secret"), log)
        started = run.wait(PATIENCE)
        assert isinstance(started, Started)
        assert started.keeper is not None
        for pid in (guardian.pid, started.keeper.pid):
            for file in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{file}", "rb") as about:
                    content = about.read()
                assert b"geheim" not in content
                assert b"also-secret" not in content
        run.stop(0, "over")
        finish(run)

    def test_the_agent_has_three_descriptors(self, guardian: GuardianClient, log: str) -> None:
        """Also when the worker has some that others could inherit."""
        leak = os.open("/etc/passwd", os.O_RDONLY)
        os.set_inheritable(leak, True)
        try:
            for stdin in (None, b"prompt"):
                with guardian.start(shell("ls -l /proc/self/fd", stdin=stdin, tee=True), log) as run:
                    said = finish(run)
                lines = said.stdout_tail.splitlines()[1:]
                assert len(lines) == 4, lines  # the last is the directory that ls itself reads
                assert ("/dev/null" in lines[0]) == (stdin is None)
                assert "pipe:" in lines[1]
                assert "pipe:" in lines[2]
        finally:
            os.close(leak)

    def test_the_agent_has_a_session_of_its_own_and_no_terminal(self, guardian: GuardianClient, log: str) -> None:
        script = "import os; print(os.getpid(), os.getpgrp(), os.getsid(0)); os.open('/dev/tty', os.O_RDWR)"
        ended = finish(guardian.start(python(script), log))
        assert len(set(ended.stdout_tail.split())) == 1
        assert ended.exit_code == 1
        assert "/dev/tty" in text_in(log)

    def test_the_agent_starts_with_default_signals(self, guardian: GuardianClient, log: str) -> None:
        said = finish(guardian.start(Plan(argv=("cat", "/proc/self/status"), env=ENV, cwd="/"), log)).stdout_tail
        masks = dict(line.split(":\t") for line in said.splitlines() if line.startswith("Sig"))
        # 32 and 33 belong to the C library, which ignores them in whatever it spawns.
        ignored = int(masks["SigIgn"], 16) & ~(0b11 << 31)
        assert (int(masks["SigBlk"], 16), ignored, int(masks["SigCgt"], 16)) == (0, 0, 0)

    def test_the_agent_starts_in_its_directory(self, guardian: GuardianClient, log: str, tmp_path: Path) -> None:
        plan = Plan(argv=("/bin/pwd",), env=ENV, cwd=str(tmp_path))
        assert finish(guardian.start(plan, log)).stdout_tail == f"{tmp_path}\n"

    def test_a_prompt_of_a_megabyte_arrives_on_stdin(self, guardian: GuardianClient, log: str) -> None:
        prompt = os.urandom(1 << 20)
        ended = finish(guardian.start(Plan(argv=("cat",), env=ENV, cwd="/", stdin=prompt), log))
        assert ended.stdout_bytes == len(prompt)
        assert b"".join(read(log)) == prompt

    def test_a_prompt_that_it_never_reads(self, guardian: GuardianClient, log: str) -> None:
        ended = finish(guardian.start(shell("exit 3", stdin=b"x" * (1 << 20)), log))
        assert ended.exit_code == 3

    def test_an_empty_prompt_is_no_terminal_and_ends_at_once(self, guardian: GuardianClient, log: str) -> None:
        assert finish(guardian.start(shell("wc -c", stdin=b""), log)).stdout_tail.strip() == "0"


class TestItsEnd:
    @pytest.mark.parametrize(("script", "code", "number"), [("exit 0", 0, None), ("exit 7", 7, None)])
    def test_the_exit_code_is_reported(
        self, guardian: GuardianClient, log: str, script: str, code: int, number: int | None
    ) -> None:
        ended = finish(guardian.start(shell(script), log))
        assert (ended.exit_code, ended.signal, ended.tree_ended_because) == (code, number, None)

    def test_a_signal_is_reported(self, guardian: GuardianClient, log: str) -> None:
        ended = finish(guardian.start(shell("kill -SEGV $$"), log))
        assert (ended.exit_code, ended.signal) == (None, signal.SIGSEGV)

    def test_resource_usage_includes_grandchildren(self, guardian: GuardianClient, log: str) -> None:
        work = "data = bytearray(100 << 20); import time\nwhile time.process_time() < 0.3: pass"
        script = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {work!r}])"
        ended = finish(guardian.start(python(script), log))
        assert ended.exit_code == 0
        assert ended.user_seconds + ended.system_seconds >= 0.3
        assert ended.peak_memory_bytes >= 100 << 20
        assert ended.wall_seconds >= 0.3

    def test_messages_arrive_in_order(self, guardian: GuardianClient, log: str) -> None:
        run = guardian.start(shell("echo one; echo two >&2"), log)
        first, *_, last = run.messages()
        assert isinstance(first, Started)
        assert isinstance(last, Ended)
        assert (run.started, run.ended) == (first, last)
        assert (last.stdout_bytes, last.stderr_bytes, last.stdout_tail) == (4, 4, "one\n")
        assert sorted(text_in(log).splitlines()) == ["one", "two"]
        assert (run.wait(0), run.fileno()) == (None, -1)

    def test_started_names_agent_and_keeper(self, guardian: GuardianClient, log: str) -> None:
        run = guardian.start(shell("exec sleep 1000"), log)
        started = run.wait(PATIENCE)
        assert isinstance(started, Started)
        assert started.agent is not None
        assert started.keeper is not None
        assert is_alive(started.agent)
        assert is_alive(started.keeper)
        run.stop(0, "over")
        finish(run)
        assert not is_alive(started.agent)
        run.close()
        await_gone([started.keeper])

    def test_fileno_wakes_a_selector(self, guardian: GuardianClient, log: str) -> None:
        import selectors

        run = guardian.start(shell("exit 4"), log)
        with selectors.DefaultSelector() as selector:
            while run.ended is None:
                selector.register(run, selectors.EVENT_READ)
                assert selector.select(PATIENCE)
                selector.unregister(run)
                while run.wait(0) is not None:
                    pass
        assert isinstance(run.ended, Ended)

    def test_the_keeper_reports_activity_about_once_a_second(
        self, guardian: GuardianClient, log: str, pids: PidPipe
    ) -> None:
        """The agent writes until the test has seen two signs; there are far fewer of them than writes."""
        script = "import time\nwhile True:\n    print('x' * 99, flush=True)\n    time.sleep(0.01)"
        run = guardian.start(python(script), log)
        signs: list[Output] = []
        while len(signs) < 2:
            message = run.wait(PATIENCE)
            assert isinstance(message, Started | Output)
            if isinstance(message, Output):
                signs.append(message)
        assert 0 < signs[0].stdout < signs[1].stdout
        assert signs[1].stdout - signs[0].stdout >= 1000
        run.stop(0, "seen")
        assert finish(run).tree_ended_because == "seen"


class TestMany:
    def test_two_hundred_runs_in_eight_threads(self, guardian: GuardianClient, tmp_path: Path) -> None:
        finish(guardian.start(shell("exit 0"), str(tmp_path / "first")))
        pid = guardian.pid
        assert pid is not None
        ours, theirs = descriptors(), descriptors(pid)
        wrong: list[object] = []

        def serve(thread: int) -> None:
            for number in range(25):
                name = f"{thread}-{number}"
                try:
                    plan = shell("cat; echo $1 >&2; exit $2", name, str(number), stdin=name.encode(), tee=True)
                    with guardian.start(plan, str(tmp_path / name)) as run:
                        ended = finish(run)
                        assert run.tee is not None
                        assert os.read(run.tee, 100) == name.encode()
                    assert (ended.exit_code, ended.stdout_tail) == (number, name)
                    assert sorted(text_in(str(tmp_path / name))) == sorted(name + name + "\n")
                except BaseException as error:
                    wrong.append(error)
                    raise

        threads = [threading.Thread(target=serve, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert not wrong
        assert descriptors() == ours
        # One more is that of the keeper which it has forked ahead, now or when they were counted first.
        await_that(lambda: descriptors(pid) <= theirs + 1, "the guardian keeps descriptors")

    def test_runs_that_never_started_leave_no_descriptor(self, guardian: GuardianClient, log: str) -> None:
        failure(guardian.start(Plan(argv=("none",), env=ENV, cwd="/"), log))
        before = descriptors()
        for _ in range(20):
            with guardian.start(Plan(argv=("none",), env=ENV, cwd="/", stdin=b"x", tee=True), log) as run:
                failure(run)
        assert descriptors() == before

    def test_an_order_from_another_thread(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
        pids.processes(1)
        threading.Thread(target=run.stop, args=(0, "cancelled")).start()
        assert finish(run).tree_ended_because == "cancelled"
        run.stop(0, "again")  # after the end it is nothing
        run.keep_alive(1)


def test_a_worker_that_does_not_renew_in_time_loses_its_agent(
    guardian: GuardianClient, log: str, pids: PidPipe
) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
    [agent] = pids.processes(1)
    run.keep_alive(1000)
    run.keep_alive(None)
    run.keep_alive(0.2)
    assert finish(run).tree_ended_because == "the worker did not renew in time"
    assert not is_alive(agent)


def test_a_worker_that_is_stopped_right_after_the_start_loses_its_agent(
    guardian: GuardianClient, log: str, pids: PidPipe
) -> None:
    """The plan has the first time limit; the worker sends nothing more."""
    plan = shell("echo $$ > $1; exec sleep 1000", pids.path).replace(keep_alive_seconds=0.2)
    run = guardian.start(plan, log)
    await_gone(pids.processes(1))
    assert finish(run).tree_ended_because == "the worker did not renew in time"


def test_a_worker_that_renews_keeps_it(guardian: GuardianClient, log: str, pids: PidPipe) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
    [agent] = pids.processes(1)
    run.keep_alive(0.5)
    for _ in range(10):
        time.sleep(0.1)  # it is the passing of time that is tested
        run.keep_alive(30)
    assert is_alive(agent)
    run.stop(0, "over")
    assert finish(run).tree_ended_because == "over"


def test_a_run_that_is_forgotten_ends(guardian: GuardianClient, log: str, pids: PidPipe) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
    agents = pids.processes(1)
    del run
    await_gone(agents)


def test_closing_a_run_ends_its_agent(guardian: GuardianClient, log: str, pids: PidPipe) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
    agents = pids.processes(1)
    run.close()
    run.close()
    await_gone(agents)

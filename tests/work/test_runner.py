"""One run: what the agent is given, what comes out, and every way in which it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import is_alive
from mam.work.messages import Ended, Failed, Output, Started
from mam.work.output import read
from mam.work.runner import Guardian, Plan
from tests.work.support import ENV, PATIENCE, await_gone, await_that, descriptors, finish, python, shell

if TYPE_CHECKING:
    from pathlib import Path

    from mam.work.runner import Run
    from tests.work.support import Roll


def text_in(directory: str) -> str:
    return b"".join(read(directory)).decode()


def failure(run: Run) -> str:
    first, second = run.wait(PATIENCE), run.wait(0)
    assert isinstance(first, Failed), first
    assert second is None
    assert run.ended == first
    assert "\n" not in first.reason
    return first.reason


class TestTheAgentIsGiven:
    def test_its_arguments_as_they_are(self, guardian: Guardian, log: str) -> None:
        wild = ["a b", "$HOME", "`x`", "'\"\\", "*", "ü\udcff", "", "line\nline"]
        script = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
        assert finish(guardian.start(python(script, *wild), log)).exit_code == 0
        assert b"".join(read(log)) == b"|".join(map(os.fsencode, wild))

    def test_its_environment_and_nothing_else(
        self, guardian: Guardian, log: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MQTT_PASSWORD", "geheim")
        plan = Plan(argv=("env", "-0"), env={**ENV, "MAM_JOB_ID": "j", "WILD": "a=b\nü\udcff"}, cwd="/")
        assert finish(guardian.start(plan, log)).exit_code == 0
        given = b"".join(read(log)).rstrip(b"\0").split(b"\0")
        assert sorted(given) == [b"MAM_JOB_ID=j", b"PATH=/usr/bin:/bin", "WILD=a=b\nü".encode() + b"\xff"]

    def test_no_secret_of_the_worker_in_the_guardian(
        self, guardian: Guardian, log: str, monkeypatch: pytest.MonkeyPatch
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

    def test_three_descriptors(self, guardian: Guardian, log: str) -> None:
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

    def test_a_session_and_a_group_of_its_own_and_no_terminal(self, guardian: Guardian, log: str) -> None:
        script = "import os; print(os.getpid(), os.getpgrp(), os.getsid(0)); os.open('/dev/tty', os.O_RDWR)"
        ended = finish(guardian.start(python(script), log))
        assert len(set(ended.stdout_tail.split())) == 1
        assert ended.exit_code == 1
        assert "/dev/tty" in text_in(log)

    def test_signals_as_a_program_expects_them(self, guardian: Guardian, log: str) -> None:
        said = finish(guardian.start(Plan(argv=("cat", "/proc/self/status"), env=ENV, cwd="/"), log)).stdout_tail
        masks = dict(line.split(":\t") for line in said.splitlines() if line.startswith("Sig"))
        # 32 and 33 belong to the C library, which ignores them in whatever it spawns.
        ignored = int(masks["SigIgn"], 16) & ~(0b11 << 31)
        assert (int(masks["SigBlk"], 16), ignored, int(masks["SigCgt"], 16)) == (0, 0, 0)

    def test_its_directory(self, guardian: Guardian, log: str, tmp_path: Path) -> None:
        plan = Plan(argv=("/bin/pwd",), env=ENV, cwd=str(tmp_path))
        assert finish(guardian.start(plan, log)).stdout_tail == f"{tmp_path}\n"

    def test_a_prompt_of_a_megabyte(self, guardian: Guardian, log: str) -> None:
        prompt = os.urandom(1 << 20)
        ended = finish(guardian.start(Plan(argv=("cat",), env=ENV, cwd="/", stdin=prompt), log))
        assert ended.stdout_bytes == len(prompt)
        assert b"".join(read(log)) == prompt

    def test_a_prompt_that_it_never_reads(self, guardian: Guardian, log: str) -> None:
        ended = finish(guardian.start(shell("exit 3", stdin=b"x" * (1 << 20)), log))
        assert ended.exit_code == 3

    def test_an_empty_prompt_is_no_terminal_and_ends_at_once(self, guardian: Guardian, log: str) -> None:
        assert finish(guardian.start(shell("wc -c", stdin=b""), log)).stdout_tail.strip() == "0"


class TestItsEnd:
    @pytest.mark.parametrize(("script", "code", "number"), [("exit 0", 0, None), ("exit 7", 7, None)])
    def test_exit_code(self, guardian: Guardian, log: str, script: str, code: int, number: int | None) -> None:
        ended = finish(guardian.start(shell(script), log))
        assert (ended.exit_code, ended.signal, ended.tree_ended_because) == (code, number, None)

    def test_signal(self, guardian: Guardian, log: str) -> None:
        ended = finish(guardian.start(shell("kill -SEGV $$"), log))
        assert (ended.exit_code, ended.signal) == (None, signal.SIGSEGV)

    def test_what_it_used_counts_grandchildren(self, guardian: Guardian, log: str) -> None:
        work = "data = bytearray(100 << 20); import time\nwhile time.process_time() < 0.3: pass"
        script = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {work!r}])"
        ended = finish(guardian.start(python(script), log))
        assert ended.exit_code == 0
        assert ended.user_seconds + ended.system_seconds >= 0.3
        assert ended.peak_memory_bytes >= 100 << 20
        assert ended.wall_seconds >= 0.3

    def test_messages_in_order(self, guardian: Guardian, log: str) -> None:
        run = guardian.start(shell("echo one; echo two >&2"), log)
        first, *_, last = run.messages()
        assert isinstance(first, Started)
        assert isinstance(last, Ended)
        assert (run.started, run.ended) == (first, last)
        assert (last.stdout_bytes, last.stderr_bytes, last.stdout_tail) == (4, 4, "one\n")
        assert sorted(text_in(log).splitlines()) == ["one", "two"]
        assert (run.wait(0), run.fileno()) == (None, -1)

    def test_started_names_agent_and_keeper(self, guardian: Guardian, log: str) -> None:
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
        await_gone([started.keeper])

    def test_fileno_wakes_a_selector(self, guardian: Guardian, log: str) -> None:
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

    def test_a_sign_of_life_about_once_a_second(self, guardian: Guardian, log: str, roll: Roll) -> None:
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


class TestOutput:
    def test_bytes_that_are_no_text(self, guardian: Guardian, log: str) -> None:
        ended = finish(guardian.start(shell(r"printf '\377\033[2Jx\0\n'"), log))
        assert ended.stdout_tail == "\ufffd\x1b[2Jx\0\n"
        assert b"".join(read(log)) == b"\xff\x1b[2Jx\0\n"

    def test_the_tail_is_the_end_and_whole_characters(self, guardian: Guardian, log: str) -> None:
        script = "import sys; sys.stdout.reconfigure(encoding='utf-8'); print('ä' * 100_000, end='z')"
        ended = finish(guardian.start(python(script), log))
        assert ended.stdout_bytes == 200_001
        assert ended.stdout_tail == "ä" * (((64 << 10) - 1) // 2) + "z"

    def test_much_more_than_the_log_may_hold(self, guardian: Guardian, log: str) -> None:
        size = 64 << 20
        run = guardian.start(shell(f"echo first; head -c {size} /dev/zero; echo last", log_limit=1 << 20), log)
        ended = finish(run)
        assert (ended.exit_code, ended.stdout_bytes, ended.lost_bytes) == (0, size + 11, 0)
        kept = b"".join(read(log))
        assert kept.startswith(b"first\n")
        assert kept.endswith(b"last\n")
        assert b"bytes of output were left out here]" in kept
        assert sum(entry.stat().st_size for entry in os.scandir(log)) <= 1 << 20

    def test_an_agent_that_closes_its_output_goes_on(self, guardian: Guardian, log: str, roll: Roll) -> None:
        script = "exec >&- 2>&-; echo $$ > $1; exec sleep 1000"
        run = guardian.start(shell(script, roll.path), log)
        [agent] = roll.call(1)
        assert isinstance(run.wait(PATIENCE), Started)
        assert run.wait(0.1) is None  # the closed pipes are not taken for its end
        assert is_alive(agent)
        run.stop(0, "over")
        assert finish(run).signal == signal.SIGKILL

    def test_a_stranger_that_holds_the_pipe_open_delays_nothing(
        self, guardian: Guardian, log: str, tmp_path: Path
    ) -> None:
        """The agent hands its stdout to this very test, which is not in its tree."""
        path = str(tmp_path / "s")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(path)
            script = (
                "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(sys.argv[1]);"
                "print('before', flush=True); socket.send_fds(s, [b'x'], [1])"
            )
            run = guardian.start(python(script, path), log)
            _, [held], _, _ = socket.recv_fds(receiver, 1, 1)
            try:
                ended = finish(run)
                assert (ended.exit_code, ended.stdout_tail) == (0, "before\n")
                with pytest.raises(BrokenPipeError):
                    os.write(held, b"late")
            finally:
                os.close(held)

    def test_a_full_disk_does_not_stop_the_agent(self, guardian: Guardian, small_disk: Path) -> None:
        plan = shell("head -c 8388608 /dev/zero; echo end", log_limit=64 << 20)
        ended = finish(guardian.start(plan, str(small_disk / "log")))
        assert (ended.exit_code, ended.stdout_bytes) == (0, (8 << 20) + 4)
        assert ended.lost_bytes >= 7 << 20
        assert ended.log_problem == "No space left on device"
        assert ended.stdout_tail.endswith("end\n")

    @pytest.mark.parametrize("kind", ["missing", "link", "file"])
    def test_a_log_that_cannot_be_made_is_a_loss_and_no_obstacle(
        self, guardian: Guardian, tmp_path: Path, kind: str
    ) -> None:
        place = tmp_path / "log"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        if kind == "missing":
            place = tmp_path / "not" / "there"
        elif kind == "link":
            place.symlink_to(elsewhere)
        else:
            place.write_text("mine")
        ended = finish(guardian.start(shell("echo hello"), str(place)))
        assert (ended.exit_code, ended.stdout_tail, ended.lost_bytes) == (0, "hello\n", 6)
        assert ended.log_problem
        assert list(elsewhere.iterdir()) == []


class TestTee:
    def test_stdout_comes_to_the_worker_byte_for_byte(self, guardian: Guardian, log: str) -> None:
        data = os.urandom(8 << 20)
        run = guardian.start(Plan(argv=("cat",), env=ENV, cwd="/", stdin=data, tee=True), log)
        with run:
            assert run.tee is not None
            got = bytearray()
            while part := os.read(run.tee, 1 << 16):
                got += part
            assert bytes(got) == data
            assert finish(run).stdout_bytes == len(data)

    def test_a_worker_that_does_not_read_is_cut_off_and_the_run_ends(self, guardian: Guardian, log: str) -> None:
        size = 16 << 20
        with guardian.start(shell(f"head -c {size} /dev/zero", tee=True, tee_patience=0.2), log) as run:
            ended = finish(run)
            assert (ended.exit_code, ended.stdout_bytes) == (0, size)
            assert run.tee is not None
            taken = 0
            while part := os.read(run.tee, 1 << 20):
                taken += len(part)
            assert 0 < taken < size
        assert len(b"".join(read(log))) == size

    def test_a_slow_worker_slows_the_agent_down_and_gets_all(self, guardian: Guardian, log: str, roll: Roll) -> None:
        size = 16 << 20
        plan = shell(f"echo $$ > $1; exec head -c {size} /dev/zero", roll.path, tee=True)
        with guardian.start(plan, log) as run:
            [agent] = roll.call(1)
            assert isinstance(run.wait(PATIENCE), Started)
            sign = run.wait(PATIENCE)
            assert isinstance(sign, Output)
            assert sign.stdout < size
            assert is_alive(agent)
            assert run.tee is not None
            taken = 0
            while part := os.read(run.tee, 1 << 20):
                taken += len(part)
            assert taken == size
            assert finish(run).exit_code == 0

    def test_what_was_not_read_in_time_can_be_read_after_the_end(self, guardian: Guardian, log: str) -> None:
        with guardian.start(shell("head -c 500000 /dev/zero", tee=True), log) as run:
            assert finish(run).stdout_bytes == 500_000
            assert run.tee is not None
            taken = 0
            while part := os.read(run.tee, 1 << 20):
                taken += len(part)
            assert taken == 500_000

    def test_a_worker_that_closes_its_end_loses_nothing_else(self, guardian: Guardian, log: str) -> None:
        size = 16 << 20
        run = guardian.start(shell(f"head -c {size} /dev/zero", tee=True), log)
        assert run.tee is not None
        os.close(run.tee)
        run.tee = None
        assert finish(run).stdout_bytes == size


class TestCannotStart:
    def test_command_not_found(self, guardian: Guardian, log: str) -> None:
        plan = Plan(argv=("no-such-agent",), env=ENV, cwd="/")
        assert failure(guardian.start(plan, log)) == "command not found: 'no-such-agent'"
        plan = Plan(argv=("/no/such/agent",), env=ENV, cwd="/")
        assert failure(guardian.start(plan, log)) == "command not found: '/no/such/agent'"

    def test_a_relative_place_in_the_path_is_passed_over(self, guardian: Guardian, log: str, tmp_path: Path) -> None:
        (tmp_path / "git").write_text("#!/bin/sh\necho stolen\n")
        (tmp_path / "git").chmod(0o755)
        for path in ("", ".", ":/nowhere", "bin/..:."):
            plan = Plan(argv=("git",), env={"PATH": path}, cwd=str(tmp_path))
            assert failure(guardian.start(plan, log)) == "command not found: 'git'"

    def test_not_executable(self, guardian: Guardian, log: str, tmp_path: Path) -> None:
        (tmp_path / "agent").write_text("x")
        for argv, path in (("agent", str(tmp_path)), (str(tmp_path / "agent"), "/bin"), (str(tmp_path), "/bin")):
            plan = Plan(argv=(argv,), env={"PATH": path}, cwd="/")
            assert failure(guardian.start(plan, log)).endswith("is not executable")

    def test_not_a_program(self, guardian: Guardian, log: str, tmp_path: Path) -> None:
        (tmp_path / "agent").write_text("x")
        (tmp_path / "agent").chmod(0o755)
        assert "is not a program" in failure(
            guardian.start(Plan(argv=(str(tmp_path / "agent"),), env=ENV, cwd="/"), log)
        )
        (tmp_path / "agent").write_text("#!/no/such/interpreter\n")
        reason = failure(guardian.start(Plan(argv=(str(tmp_path / "agent"),), env=ENV, cwd="/"), log))
        assert "first line does not exist" in reason

    def test_directory_gone(self, guardian: Guardian, log: str, tmp_path: Path) -> None:
        plan = Plan(argv=("true",), env=ENV, cwd=str(tmp_path / "gone"))
        assert failure(guardian.start(plan, log)).endswith("gone': No such file or directory")
        (tmp_path / "file").write_text("")
        plan = Plan(argv=("true",), env=ENV, cwd=str(tmp_path / "file"))
        assert failure(guardian.start(plan, log)).endswith("Not a directory")

    @pytest.mark.parametrize("argv", [("true", "x" * (1 << 20)), ("true", *["x" * 1000] * 10_000)])
    def test_command_line_too_long(self, guardian: Guardian, log: str, argv: tuple[str, ...]) -> None:
        assert "belongs on stdin" in failure(guardian.start(Plan(argv=argv, env=ENV, cwd="/"), log))

    @pytest.mark.parametrize(
        ("argv", "env"),
        [
            (("true", "a\0b"), ENV),
            (("true", "\ud800"), ENV),
            (("true",), {"A=B": "c", **ENV}),
            (("true",), {"A": "\0", **ENV}),
            ((), ENV),
            (("",), ENV),
        ],
    )
    def test_what_no_program_can_be_given(
        self, guardian: Guardian, log: str, argv: tuple[str, ...], env: dict[str, str]
    ) -> None:
        assert failure(guardian.start(Plan(argv=argv, env=env, cwd="/"), log))

    @pytest.mark.parametrize("cwd", ["\ud800", "/a\0b"])
    def test_what_is_no_directory(self, guardian: Guardian, log: str, cwd: str) -> None:
        assert failure(guardian.start(Plan(argv=("true",), env=ENV, cwd=cwd), log))

    def test_no_more_processes(self, log: str) -> None:
        """In a process of its own, whose user may have no more of them. The limit is not for root, which therefore
        becomes somebody else for the count, and gives up the rights to pass over it."""
        import subprocess

        script = """
import ctypes, os, resource
from mam.work.runner import Guardian, Plan
if os.geteuid() == 0:
    for capability in (21, 24):  # CAP_SYS_ADMIN, CAP_SYS_RESOURCE, for programs that are started from here
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0
    os.setresuid(65534, 0, 0)
with Guardian() as guardian:
    plan = Plan(argv=("true",), env={"PATH": "/usr/bin:/bin"}, cwd="/")
    resource.setrlimit(resource.RLIMIT_NPROC, (0, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
    *_, last = guardian.start(plan, "/nowhere/log").messages()
    print(type(last).__name__, last.reason, sep=": ")
"""
        asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
        who = "no keeper for the run" if os.geteuid() == 0 else "the run could not be started"
        assert asked.stdout == f"Failed: {who}: Resource temporarily unavailable\n", asked.stderr

    def test_no_descriptors_left_in_the_worker(self, log: str) -> None:
        import subprocess

        script = """
import os, resource
from mam.work.runner import Guardian, Plan
with Guardian() as guardian:
    plan = Plan(argv=("true",), env={"PATH": "/usr/bin:/bin"}, cwd="/", stdin=b"x", tee=True)
    *_, before = guardian.start(plan, "/nowhere/log").messages()
    taken = []
    reasons = []
    for spare in range(8):
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for _ in range(spare):
            os.close(taken.pop())
        count = len(os.listdir("/proc/self/fd")) if spare else 0
        run = guardian.start(plan, "/nowhere/log")
        *_, last = run.messages()
        reasons.append(getattr(last, "reason", "ran"))
        run.close()
        assert not spare or len(os.listdir("/proc/self/fd")) == count, spare
    print(*sorted(set(reasons)), sep=";")
"""
        asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
        assert asked.stdout == "ran;the run could not be started: Too many open files\n", asked.stderr


class TestMany:
    def test_two_hundred_runs_in_eight_threads(self, guardian: Guardian, tmp_path: Path) -> None:
        finish(guardian.start(shell("exit 0"), str(tmp_path / "first")))
        assert guardian.pid is not None
        ours, theirs = descriptors(), descriptors(guardian.pid)
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
        pid = guardian.pid
        await_that(lambda: descriptors(pid) == theirs, "the guardian keeps descriptors")

    def test_runs_that_never_started_leave_no_descriptor(self, guardian: Guardian, log: str) -> None:
        failure(guardian.start(Plan(argv=("none",), env=ENV, cwd="/"), log))
        before = descriptors()
        for _ in range(20):
            with guardian.start(Plan(argv=("none",), env=ENV, cwd="/", stdin=b"x", tee=True), log) as run:
                failure(run)
        assert descriptors() == before

    def test_an_order_from_another_thread(self, guardian: Guardian, log: str, roll: Roll) -> None:
        run = guardian.start(shell("echo $$ > $1; exec sleep 1000", roll.path), log)
        roll.call(1)
        threading.Thread(target=run.stop, args=(0, "cancelled")).start()
        assert finish(run).tree_ended_because == "cancelled"
        run.stop(0, "again")  # after the end it is nothing
        run.hold(1)


def test_a_worker_that_does_not_renew_in_time_loses_its_agent(guardian: Guardian, log: str, roll: Roll) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", roll.path), log)
    [agent] = roll.call(1)
    run.hold(1000)
    run.hold(None)
    run.hold(0.2)
    assert finish(run).tree_ended_because == "the worker did not renew in time"
    assert not is_alive(agent)


def test_a_worker_that_renews_keeps_it(guardian: Guardian, log: str, roll: Roll) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", roll.path), log)
    [agent] = roll.call(1)
    run.hold(0.5)
    for _ in range(10):
        time.sleep(0.1)  # it is the passing of time that is tested
        run.hold(30)
    assert is_alive(agent)
    run.stop(0, "over")
    assert finish(run).tree_ended_because == "over"


def test_a_run_that_is_forgotten_ends(guardian: Guardian, log: str, roll: Roll) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", roll.path), log)
    agents = roll.call(1)
    del run
    await_gone(agents)


def test_closing_a_run_ends_its_agent(guardian: Guardian, log: str, roll: Roll) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", roll.path), log)
    agents = roll.call(1)
    run.close()
    run.close()
    await_gone(agents)

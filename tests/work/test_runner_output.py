"""What an agent prints: in the log, in the tail, to the worker, and how much of it."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import is_alive
from mam.work.output_log import read
from mam.work.process.messages import Output, Started
from mam.work.process.runner import GuardianClient, Plan
from tests.work.support import (
    ENV,
    PATIENCE,
    finish,
    python,
    shell,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.work.support import PidPipe


class TestOutput:
    def test_bytes_that_are_no_text(self, guardian: GuardianClient, log: str) -> None:
        ended = finish(guardian.start(shell(r"printf '\377\033[2Jx\0\n'"), log))
        assert ended.stdout_tail == "\ufffd\x1b[2Jx\0\n"
        assert b"".join(read(log)) == b"\xff\x1b[2Jx\0\n"

    def test_the_tail_is_the_end_and_whole_characters(self, guardian: GuardianClient, log: str) -> None:
        script = "import sys; sys.stdout.reconfigure(encoding='utf-8'); print('ä' * 100_000, end='z')"
        ended = finish(guardian.start(python(script), log))
        assert ended.stdout_bytes == 200_001
        assert ended.stdout_tail == "ä" * (((64 << 10) - 1) // 2) + "z"

    def test_much_more_than_the_log_may_hold(self, guardian: GuardianClient, log: str) -> None:
        size = 64 << 20
        run = guardian.start(shell(f"echo first; head -c {size} /dev/zero; echo last", log_limit=1 << 20), log)
        ended = finish(run)
        assert (ended.exit_code, ended.stdout_bytes, ended.lost_bytes) == (0, size + 11, 0)
        kept = b"".join(read(log))
        assert kept.startswith(b"first\n")
        assert kept.endswith(b"last\n")
        assert b"bytes of output were left out here]" in kept
        more = sum(entry.stat().st_size for entry in os.scandir(f"{log}.more"))
        assert os.stat(log).st_size + more <= 1 << 20

    def test_an_agent_that_closes_its_output_keeps_running(
        self, guardian: GuardianClient, log: str, pids: PidPipe
    ) -> None:
        script = "exec >&- 2>&-; echo $$ > $1; exec sleep 1000"
        run = guardian.start(shell(script, pids.path), log)
        [agent] = pids.processes(1)
        assert isinstance(run.wait(PATIENCE), Started)
        assert run.wait(0.1) is None  # the closed pipes are not taken for its end
        assert is_alive(agent)
        run.stop(0, "over")
        assert finish(run).signal == signal.SIGKILL

    def test_a_stranger_that_holds_the_pipe_open_delays_nothing(
        self, guardian: GuardianClient, log: str, tmp_path: Path
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

    def test_a_full_disk_does_not_stop_the_agent(self, guardian: GuardianClient, small_disk: Path) -> None:
        plan = shell("head -c 8388608 /dev/zero; echo end", log_limit=64 << 20)
        ended = finish(guardian.start(plan, str(small_disk / "log")))
        assert (ended.exit_code, ended.stdout_bytes) == (0, (8 << 20) + 4)
        assert ended.lost_bytes >= 7 << 20
        assert ended.log_problem == "No space left on device"
        assert ended.stdout_tail.endswith("end\n")

    @pytest.mark.parametrize("kind", ["missing", "link", "file"])
    def test_a_log_that_cannot_be_made_is_a_loss_and_no_obstacle(
        self, guardian: GuardianClient, tmp_path: Path, kind: str
    ) -> None:
        place, more = tmp_path / "log", tmp_path / "log.more"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        if kind == "missing":
            place = tmp_path / "not" / "there"
        elif kind == "link":
            place.symlink_to(elsewhere)
            more.symlink_to(elsewhere)
        else:
            place.mkdir()
            more.write_text("mine")
        ended = finish(guardian.start(shell("echo hello"), str(place)))
        assert (ended.exit_code, ended.stdout_tail, ended.lost_bytes) == (0, "hello\n", 6)
        assert ended.log_problem
        assert list(elsewhere.iterdir()) == []


class TestTee:
    def test_stdout_comes_to_the_worker_byte_for_byte(self, guardian: GuardianClient, log: str) -> None:
        data = os.urandom(8 << 20)
        run = guardian.start(Plan(argv=("cat",), env=ENV, cwd="/", stdin=data, tee=True), log)
        with run:
            assert run.tee is not None
            got = bytearray()
            while part := os.read(run.tee, 1 << 16):
                got += part
            assert bytes(got) == data
            assert finish(run).stdout_bytes == len(data)

    def test_a_worker_that_does_not_read_is_cut_off_and_the_run_ends(self, guardian: GuardianClient, log: str) -> None:
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

    def test_a_slow_worker_slows_the_agent_down_and_gets_all(
        self, guardian: GuardianClient, log: str, pids: PidPipe
    ) -> None:
        size = 16 << 20
        plan = shell(f"echo $$ > $1; exec head -c {size} /dev/zero", pids.path, tee=True)
        with guardian.start(plan, log) as run:
            [agent] = pids.processes(1)
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

    def test_unread_output_can_be_read_after_the_end(self, guardian: GuardianClient, log: str) -> None:
        with guardian.start(shell("head -c 500000 /dev/zero", tee=True), log) as run:
            assert finish(run).stdout_bytes == 500_000
            assert run.tee is not None
            taken = 0
            while part := os.read(run.tee, 1 << 20):
                taken += len(part)
            assert taken == 500_000

    def test_a_worker_that_closes_its_end_loses_nothing_else(self, guardian: GuardianClient, log: str) -> None:
        size = 16 << 20
        run = guardian.start(shell(f"head -c {size} /dev/zero", tee=True), log)
        assert run.tee is not None
        os.close(run.tee)
        run.tee = None
        assert finish(run).stdout_bytes == size

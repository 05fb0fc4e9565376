"""Every way in which an agent cannot start gives one line with the reason."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from mam.work.process.runner import GuardianClient, Plan
from tests.work.support import (
    ENV,
    PATIENCE,
    failure,
)

if TYPE_CHECKING:
    from pathlib import Path


class TestCannotStart:
    def test_a_missing_command_is_named(self, guardian: GuardianClient, log: str) -> None:
        plan = Plan(argv=("no-such-agent",), env=ENV, cwd="/")
        assert failure(guardian.start(plan, log)) == "command not found: 'no-such-agent'"
        plan = Plan(argv=("/no/such/agent",), env=ENV, cwd="/")
        assert failure(guardian.start(plan, log)) == "command not found: '/no/such/agent'"

    def test_a_relative_place_in_the_path_is_passed_over(
        self, guardian: GuardianClient, log: str, tmp_path: Path
    ) -> None:
        (tmp_path / "git").write_text("#!/bin/sh\necho stolen\n")
        (tmp_path / "git").chmod(0o755)
        for path in ("", ".", ":/nowhere", "bin/..:."):
            plan = Plan(argv=("git",), env={"PATH": path}, cwd=str(tmp_path))
            assert failure(guardian.start(plan, log)) == "command not found: 'git'"

    def test_a_file_that_is_not_executable_is_named(self, guardian: GuardianClient, log: str, tmp_path: Path) -> None:
        (tmp_path / "agent").write_text("x")
        for argv, path in (("agent", str(tmp_path)), (str(tmp_path / "agent"), "/bin"), (str(tmp_path), "/bin")):
            plan = Plan(argv=(argv,), env={"PATH": path}, cwd="/")
            assert failure(guardian.start(plan, log)).endswith("is not executable")

    def test_a_file_that_is_no_program_is_named(self, guardian: GuardianClient, log: str, tmp_path: Path) -> None:
        (tmp_path / "agent").write_text("x")
        (tmp_path / "agent").chmod(0o755)
        assert "is not a program" in failure(
            guardian.start(Plan(argv=(str(tmp_path / "agent"),), env=ENV, cwd="/"), log)
        )
        (tmp_path / "agent").write_text("#!/no/such/interpreter\n")
        reason = failure(guardian.start(Plan(argv=(str(tmp_path / "agent"),), env=ENV, cwd="/"), log))
        assert "first line does not exist" in reason

    def test_a_missing_directory_is_named(self, guardian: GuardianClient, log: str, tmp_path: Path) -> None:
        plan = Plan(argv=("true",), env=ENV, cwd=str(tmp_path / "gone"))
        assert failure(guardian.start(plan, log)).endswith("gone': No such file or directory")
        (tmp_path / "file").write_text("")
        plan = Plan(argv=("true",), env=ENV, cwd=str(tmp_path / "file"))
        assert failure(guardian.start(plan, log)).endswith("Not a directory")

    @pytest.mark.parametrize("argv", [("true", "x" * (1 << 20)), ("true", *["x" * 1000] * 10_000)])
    def test_a_command_line_that_is_too_long_is_reported(
        self, guardian: GuardianClient, log: str, argv: tuple[str, ...]
    ) -> None:
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
        self, guardian: GuardianClient, log: str, argv: tuple[str, ...], env: dict[str, str]
    ) -> None:
        assert failure(guardian.start(Plan(argv=argv, env=env, cwd="/"), log))

    @pytest.mark.parametrize("cwd", ["\ud800", "/a\0b"])
    def test_a_working_directory_that_is_none(self, guardian: GuardianClient, log: str, cwd: str) -> None:
        assert failure(guardian.start(Plan(argv=("true",), env=ENV, cwd=cwd), log))

    def test_a_limit_of_processes_is_reported(self, log: str) -> None:
        """In a process of its own, whose user may have no more of them. The limit is not for root, which therefore
        becomes another user for the count, and gives up the rights to pass over it."""
        import subprocess

        script = """
import ctypes, os, resource
from mam.work.process.runner import GuardianClient, Plan
if os.geteuid() == 0:
    for capability in (21, 24):  # CAP_SYS_ADMIN, CAP_SYS_RESOURCE, for programs that are started from here
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0
    os.setresuid(65534, 0, 0)
with GuardianClient() as guardian:
    plan = Plan(argv=("true",), env={"PATH": "/usr/bin:/bin"}, cwd="/")
    resource.setrlimit(resource.RLIMIT_NPROC, (0, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
    *_, last = guardian.start(plan, "/nowhere/log").messages()
    print(type(last).__name__, last.reason, sep=": ")
"""
        asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
        assert asked.stdout == "Failed: the run could not be started: Resource temporarily unavailable\n", asked.stderr

    def test_a_worker_without_descriptors_reports_it(self, log: str) -> None:
        import subprocess

        script = """
import os, resource
from mam.work.process.runner import GuardianClient, Plan
with GuardianClient() as guardian:
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

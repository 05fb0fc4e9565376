"""Kills real commands with strace at the Nth call of a kind, without an interpreter start for each.

One process imports mam and then only forks. Each child runs one command, from its arguments to its exit code, as
`mam` does. strace attaches when the process is ready and counts the calls of each child from 1. The process talks to
the test with calls that strace never injects. `tracing.py` does the same to commands that were really started, which
costs ten times as much.

`python -m tests.faults.forked_commands DESCRIPTOR FOLDER` is that process.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.store_kinds import StoreKind
from tests.faults.verbs import parted
from tests.waiting import await_that

ATTACHED = 20.0
LARGEST = 1 << 16
IMPORT = "import"


class CommandForker:
    """The process that forks; `run` returns the exit code of a command, or None if it was killed."""

    def __init__(self, store_kind: StoreKind, folder: Path) -> None:
        from tests.needs import program  # not for the process that forks

        self._strace = program("strace")
        self._ours, theirs = socket.socketpair()
        environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(folder / "home"), "MAM_STORE": store_kind.address(folder),
            "MAM_AGENTS_DIR": str(folder / "agents"),
            "DELEGATE_JOB_LOGS_DIR": str(folder / "logs"),
        }  # fmt: skip
        (folder / "home").mkdir()
        self.said = folder / "said"
        with open(self.said, "wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.forked_commands", str(theirs.fileno()), str(folder)],
                env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=said,
            )  # fmt: skip
        theirs.close()
        assert self._ours.recv(LARGEST) == b"ready", "the process that forks did not start"

    def close(self) -> None:
        self._ours.close()
        self._process.wait()

    def run(self, command: str) -> int | None:
        code = int(self._answer(command))
        return None if code < 0 else code

    def _answer(self, words: str) -> bytes:
        self._ours.send(words.encode())
        answer = self._ours.recv(LARGEST)
        assert answer, f"the process that forks has ended: {self.said.read_text(encoding='utf-8')[-2000:]}"
        return answer

    @contextmanager
    def killed_at(self, moments: dict[str, int]) -> Iterator[None]:
        """Kills at the Nth time that a command makes one of these calls, at the first of them."""
        self._answer(IMPORT)  # strace would also count its own calls
        inject = ["-e", f"trace={','.join(moments)}"]
        for call, nth in moments.items():
            inject += ["-e", f"inject={call}:signal=SIGKILL:when={nth}"]
        tracer = subprocess.Popen(
            [self._strace, "-f", "-qq", "-p", str(self._process.pid), *inject, "-o", "/dev/null"],
            stderr=subprocess.DEVNULL,
        )
        try:
            self._await_tracer(tracer)
            yield
        finally:
            tracer.terminate()
            tracer.wait()

    def _await_tracer(self, tracer: subprocess.Popen[bytes]) -> None:
        status = Path(f"/proc/{self._process.pid}/status")

        def is_attached() -> bool:
            assert tracer.poll() is None, "strace may not attach itself here"
            return f"TracerPid:\t{tracer.pid}\n" in status.read_text(encoding="ascii")

        await_that(is_attached, "strace did not attach itself", longest=ATTACHED)


def main() -> None:
    commands = socket.socket(fileno=int(sys.argv[1]))
    os.chdir(sys.argv[2])
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    commands.send(b"ready")
    while command := commands.recv(LARGEST).decode():
        if command == IMPORT:
            _import_what_they_needed(ours)
            commands.send(b"done")
            continue
        child = os.fork()
        if child == 0:
            _be_the_command(command, theirs)
        status = os.waitpid(child, 0)[1]
        commands.send(b"%d" % os.waitstatus_to_exitcode(status))


def _be_the_command(command: str, parent: socket.socket) -> None:
    from mam.__main__ import run

    environment, words = parted(command)
    if "STDIN" in environment:
        os.dup2(os.open(environment.pop("STDIN"), os.O_RDONLY), 0)
    os.environ.update(environment)
    known = {*sys.modules}
    code = run(words)
    sys.stdout.flush()
    if new := sys.modules.keys() - known:
        with suppress(BlockingIOError):
            parent.send(f"{' '.join(new)} ".encode())
    os._exit(code)


def _import_what_they_needed(children: socket.socket) -> None:
    """Imports once, here, so that the next child opens only what its command needs."""
    with suppress(BlockingIOError):
        for name in children.recv(LARGEST, socket.MSG_DONTWAIT).decode().split():
            with suppress(ImportError):
                importlib.import_module(name)
        gc.collect()
        gc.freeze()


if __name__ == "__main__":
    main()

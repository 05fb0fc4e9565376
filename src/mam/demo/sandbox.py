"""A temporary directory with a store, and workers as real processes.

Settings, cache, state and store are below this directory, so the demo reads and writes nothing of the user.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from mam.config.settings import Config
from mam.demo.demo_jobs import LABEL, VALIDATION, VALIDATOR
from mam.location.stores import create_store, locate, open_located
from mam.machine.processes import ProcessId, is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from mam.registry import Registry

STOP_SECONDS = 15.0
MARK = "MAM_DEMO"
"""An environment variable of every process of the demo, which finds remaining processes."""


class Sandbox:
    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self.directory = ""
        self.registry: Registry

    def __enter__(self) -> Self:
        self.directory = os.path.realpath(tempfile.mkdtemp(prefix="mam-demo-"))
        try:
            self._create()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop_workers()
        self.wait_until_gone([], include_marked=True)  # a remaining writer would create files again
        os.chdir("/")
        if not self._keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def project(self) -> str:
        return os.path.join(self.directory, "project")

    @property
    def state(self) -> str:
        return os.path.join(self.directory, "state")

    @property
    def validator(self) -> str:
        return os.path.join(self.directory, VALIDATOR)

    def _create(self) -> None:
        for name in ("project/.mam", "bin", "state", "cache", "config"):
            os.makedirs(os.path.join(self.directory, name), 0o700)
        # An empty file of settings, so that mam does not look for another one upward.
        _write(os.path.join(self.project, ".mam", "config.toml"), "")
        _write(self.validator, VALIDATION, 0o700)
        # Jobs call `mam`, which may not be on the user's PATH.
        _write(
            os.path.join(self.directory, "bin", "mam"),
            f'#!/bin/sh\nexec {_quoted(sys.executable)} -P -m mam "$@"\n',
            0o700,
        )
        self._isolate_environment()
        located = locate(os.path.join(self.project, ".mam", "jobs"), None, Config())
        create_store(located, Config())
        self.registry = open_located(located, Config())

    def _isolate_environment(self) -> None:
        """Remove the user's settings from the environment of this process too."""
        for name in list(os.environ):
            if name.startswith(("MAM_", "MQTT_", "XDG_", "DELEGATE_")) and name not in ("MAM_DEBUG", "XDG_RUNTIME_DIR"):
                del os.environ[name]
        for name in ("state", "cache", "config"):
            os.environ[f"XDG_{name.upper()}_HOME"] = os.path.join(self.directory, name)
        os.environ["PATH"] = os.pathsep.join((os.path.join(self.directory, "bin"), os.getenv("PATH", os.defpath)))
        os.environ[MARK] = self.directory
        os.chdir(self.project)

    # -- workers ---------------------------------------------------------------------------------------------------

    def start_worker(self, name: str, *options: str) -> None:
        with open(os.path.join(self.directory, f"{name}.log"), "ab") as log:
            self._workers[name] = subprocess.Popen(
                [sys.executable, "-P", "-m", "mam", "worker", "-s", LABEL, "--owner", name, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.project, start_new_session=True,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """Kill a worker with SIGKILL."""
        worker = self._workers.pop(name)
        worker.kill()
        worker.wait()

    def exited_workers(self) -> list[str]:
        """Workers that ended unexpectedly."""
        return [name for name, worker in self._workers.items() if worker.poll() is not None]

    def stop_workers(self) -> bool:
        """Whether all workers stopped on SIGTERM."""
        for worker in self._workers.values():
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        ends, stopped_cleanly = time.monotonic() + STOP_SECONDS, True
        for worker in self._workers.values():
            try:
                worker.wait(max(0.1, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
                stopped_cleanly = False
        self._workers.clear()
        return stopped_cleanly

    def wait_until_gone(self, processes: list[ProcessId], *, include_marked: bool = False) -> list[int]:
        """The processes, also those with MARK, that still run after STOP_SECONDS."""
        ends = time.monotonic() + STOP_SECONDS
        while left := {one.pid for one in processes if is_alive(one)} | (self._marked() if include_marked else set()):
            if time.monotonic() > ends:
                break
            time.sleep(0.05)  # the end of another process's child sends no signal
        return sorted(left)

    def _marked(self) -> set[int]:
        """Processes with MARK, where /proc shows the environment of processes."""
        mark = os.fsencode(f"{MARK}={self.directory}")
        found = set()
        for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f"/proc/{name}/environ", "rb") as file:
                        if mark in file.read().split(b"\0"):
                            found.add(int(name))
                except OSError:
                    continue
        return found


def _write(path: str, text: str, mode: int = 0o600) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _quoted(word: str) -> str:
    from shlex import quote

    return quote(word)

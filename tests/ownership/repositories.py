"""Repositories that contain a store, made with real git, and a broker that counts connections."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.command import Mam

EVIL = "e0000000-0000-4000-8000-000000000001"
_IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
_WAYS = ("-c", "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null")


def git(*words: str, cwd: Path) -> str:
    ran = subprocess.run(
        ["git", *_IDENTITY, *_WAYS, *words], cwd=cwd, check=True, capture_output=True, text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    return ran.stdout


def committed(path: Path) -> Path:
    """Everything in it, ignored or not."""
    git("add", "-A", "-f", cwd=path)
    git("commit", "-q", "--allow-empty", "-m", "all of it", cwd=path)
    return path


def repository(path: Path) -> Path:
    path.mkdir(parents=True)
    git("init", "-q", cwd=path)
    return committed(path)


def shell_job(mark: Path, job_id: str = EVIL, **fields: Any) -> str:
    """A pending job of the shell that leaves a mark when it runs, in the form of the old scripts."""
    made = "2020-01-01T00:00:00Z"
    return json.dumps({
        "job_id": job_id, "prompt": f"touch {mark}", "agent": "shell", "agent_session": "shell", "status": "pending",
        "created_at": made, "updated_at": made, "timeout_sec": 60, "idle_timeout_sec": 60, "expected_artifacts": [],
        "last_seq": 0, **fields,
    })  # fmt: skip


def clone_with(mam: Mam, mark: Path, store: str = ".mam/jobs", **fields: Any) -> Path:
    """A clone of a repository in which a job lies at the place of the store."""
    upstream = repository(mam.home / "upstream")
    (upstream / store).mkdir(parents=True)
    (upstream / store / f"{EVIL}.json").write_text(shell_job(mark, **fields))
    committed(upstream)
    return cloned(mam, upstream)


def cloned(mam: Mam, upstream: Path, *words: str) -> Path:
    """In the place of the project."""
    shutil.rmtree(mam.here)
    git("clone", "-q", *words, str(upstream), str(mam.here), cwd=mam.home)
    return mam.here


@contextmanager
def counting_broker() -> Iterator[tuple[int, list[bytes]]]:
    """A port, and the first bytes of each connection that it got."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(200))

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], heard
        server.shutdown(socket.SHUT_RDWR)
    thread.join()

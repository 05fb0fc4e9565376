"""Other job queues on PostgreSQL, in a virtual environment that is removed at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.bench.common import PROMPT, ROOT
from tools.bench.server import DurableServer


class Peer:
    """One of them, and how it is driven."""

    def __init__(self, name: str, packages: tuple[str, ...], worker: str, budget: str) -> None:
        self.name = name
        self.budget = budget
        self.worker = f"tools.bench.workers.{worker}"
        self._packages = packages
        self.version = ""

    @property
    def shown(self) -> str:
        return f"{self.name} {self.version}".strip()

    def install(self, python: Path) -> bool:
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        if subprocess.run([*pip, "install", *self._packages], capture_output=True, check=False).returncode:
            return False
        code = f"import importlib.metadata; print(importlib.metadata.version({self._packages[0]!r}))"
        asked = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
        self.version = asked.stdout.strip()
        return True


PEERS = (
    # `JobManager.fetch_job` and `finish_job` in one event loop, its own connector with one connection.
    Peer("Procrastinate", ("procrastinate", "psycopg[binary]"), "with_procrastinate", "at least 2 times"),
    # `Queries.dequeue` of one job and `log_jobs` of one in one uvloop.
    Peer("PgQueuer", ("pgqueuer", "asyncpg", "uvloop"), "with_pgqueuer", "at least 1.5 times"),
)


def installed_peers(venv: Path, server: DurableServer, count: int) -> dict[str, list[str]]:
    """By name, the command of a process that works on so many jobs of that peer; only those that can be had."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = venv / "bin" / "python"
    commands: dict[str, list[str]] = {}
    for peer in PEERS:
        if not peer.install(python):
            continue
        url = server.new_database(peer.name.lower())
        command = [str(python), "-m", peer.worker, url]
        subprocess.run([*command, str(count), PROMPT], cwd=ROOT, check=True)
        server.settle(url)
        commands[peer.name] = command
    return commands

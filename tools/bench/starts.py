"""A whole command, as a shell starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mam.registry import Registry
from tools.bench.common import LABEL, OWNER, ROOT, Measured, Row, Rows
from tools.bench.sqlite import filled_files, filled_sqlite

STARTS = 60
_META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
_DISCOVER = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": _META}}).encode()
"""The first request of an agent's session."""


def measure_starts(folder: Path) -> Rows:
    python, mam = installed(folder / "venv")
    environment = isolated(folder)
    jobs = filled_files(folder / "home" / ".mam" / "jobs", 2000 + 4 * STARTS)
    registry = Registry(jobs)
    running = [str(getattr(registry.pick(LABEL, owner=OWNER), "job_id", "")) for _ in range(STARTS + 1)]
    beating = running.pop()
    jobs.close()
    database = folder / "home" / "jobs.db"
    filled_sqlite(database, 1000).close()

    def run(*command: str, said: bytes = b"") -> None:
        where = folder / "home"
        subprocess.run(command, env=environment, cwd=where, check=True, stdout=subprocess.DEVNULL, input=said)

    measured = Measured(
        STARTS,
        {
            "bare": lambda: run(python, "-c", "pass"),
            "pick": lambda: run(mam, "pick", "--agent-session", LABEL),
            "complete": lambda: run(mam, "complete", running.pop(), "--attempt", "1"),
            "heartbeat": lambda: run(mam, "heartbeat", beating, "--attempt", "1"),
            "mcp": lambda: run(mam, "mcp", said=_DISCOVER),
            "sqlite": lambda: run(mam, "pick", "--agent-session", LABEL, "--store", f"sqlite://{database}"),
        },
    )
    bare = measured.median("bare")
    rows: Rows = [
        Row(
            f"`mam {verb}`, with a config.toml", "`python -c pass`", measured.median(verb), bare, "at most 4"
        )
        for verb in ("pick", "complete", "heartbeat")
    ]  # fmt: skip
    rows.append(Row("`mam pick` on SQLite", "`python -c pass`", measured.median("sqlite"), bare, "at most 4"))
    rows.append(Row("`mam mcp`, first answer", "`python -c pass`", measured.median("mcp"), bare, "at most 6"))
    return rows


def installed(venv: Path) -> tuple[str, str]:
    """mam as a user has it: built and installed with its bytecode, not run from the source tree."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), f"{ROOT}[sqlite]"], check=True)
    subprocess.run([str(venv / "bin" / "python"), "-m", "compileall", "-q", str(venv / "lib")], check=False)
    return str(venv / "bin" / "python"), str(venv / "bin" / "mam")


def isolated(folder: Path) -> dict[str, str]:
    home = folder / "home"
    (home / ".config" / "mam").mkdir(parents=True)
    (home / ".config" / "mam" / "config.toml").write_text('default_agent = "codex"\n', encoding="utf-8")
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

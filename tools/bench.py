"""`make bench`: how long mam takes, always as a ratio to something bare that is measured in the same run.

Both sides take turns, so that whatever else the machine does meets both. The table goes into docs/performance.md.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mam.audit.mirror import AuditLog
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
LABEL = "bench"
CLAIMS = 400
STARTS = 60


class Measured:
    """Durations of several things that took turns."""

    def __init__(self, turns: int, things: dict[str, Callable[[], object]]) -> None:
        self._seconds: dict[str, list[float]] = {name: [] for name in things}
        for _ in range(turns):
            for name, thing in things.items():
                start = time.perf_counter()
                thing()
                self._seconds[name].append(time.perf_counter() - start)

    def median(self, name: str) -> float:
        return statistics.median(self._seconds[name])

    def p95(self, name: str) -> float:
        return statistics.quantiles(self._seconds[name], n=20)[-1]


class Row:
    def __init__(self, what: str, against: str, seconds: float, bare: float, bar: str) -> None:
        self.cells = (
            what,
            f"{seconds * 1e3:.2f} ms",
            against,
            f"{bare * 1e3:.2f} ms",
            f"**{seconds / bare:.2f}**",
            bar,
        )


def main() -> None:
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory(prefix="mam-bench-", dir=os.environ.get("MAM_BENCH_DIR")) as folder:
        rows = [*claims(Path(folder), 5_000 if quick else 100_000), *starts(Path(folder))]
    table = as_table(rows)
    print(table)
    if not quick:
        write_report(table)


# -- a claim, inside a process that is already running ---------------------------------------------------------------


def claims(folder: Path, many: int) -> list[Row]:
    small, large = store_with(folder / "small", 100 + CLAIMS), store_with(folder / "large", many)
    audited = Registry(small, AuditLog(str(folder / "logs")))
    size = len(next(iter(Path(large.address).glob("*.json"))).read_bytes())
    bare = bare_write(folder / "bare", size)
    measured = Measured(
        CLAIMS // 2,
        {
            "bare": bare,
            "small": lambda: Registry(small).pick(LABEL, owner="bench"),
            "large": lambda: Registry(large).pick(LABEL, owner="bench"),
            "audited": lambda: audited.pick(LABEL, owner="bench"),
        },
    )
    against = f"write, fsync, rename, fsync(dir) of {size} bytes"
    count = f"{many:,}"
    return [
        Row(f"claim, {count} records", against, measured.median("large"), measured.median("bare"), "at most 3"),
        Row(
            f"claim, {count} records", "claim, about 400 records",
            measured.median("large"), measured.median("small"), "at most 1.5",
        ),
        Row(
            "claim and audit log, about 400 records", against,
            measured.median("audited"), measured.median("bare"), "none set",
        ),
    ]  # fmt: skip


def store_with(path: Path, count: int) -> FilesStore:
    """Jobs as an old registry would bring them: taking 100,000 over is quicker than registering each."""
    create_files_store(str(path))
    for number in range(count):
        job_id = f"bench{number:08d}"
        (path / f"{job_id}.json").write_text(json.dumps(old_record(job_id, number)), encoding="utf-8")
    store = FilesStore(str(path))
    store.end()
    # The first claim of each record also gives it mam's own fields; that is part of what is measured.
    return store


def old_record(job_id: str, number: int) -> dict[str, object]:
    return {
        "schema_version": 1, "job_id": job_id, "status": "pending",
        "created_at": f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z",
        "updated_at": "2026-01-02T00:00:00Z", "prompt": "x" * 400, "agent": "bench", "agent_session": LABEL,
        "broker": {"host": None, "port": 1883, "tls": False, "username": None, "password": None},
        "topic_prefix": f"python/mqtt/jobs/{job_id}", "timeout_sec": 3600, "idle_timeout_sec": 120,
        "expected_artifacts": [], "last_seq": 0, "auth_token": None,
    }  # fmt: skip


def bare_write(folder: Path, size: int) -> Callable[[], None]:
    """What any durable change of one file costs, in a directory that holds nothing else."""
    folder.mkdir()
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    data = b"x" * size

    def write() -> None:
        descriptor = os.open("record.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
        os.rename("record.tmp", "record.json", src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)

    return write


# -- a whole command, from the shell's point of view -----------------------------------------------------------------


def starts(folder: Path) -> list[Row]:
    python, mam = installed(folder / "venv")
    environment = isolated(folder)
    jobs = store_with(folder / "home" / ".mam" / "jobs", 1000 + STARTS)
    registry = Registry(jobs)
    running = [str(getattr(registry.pick(LABEL, owner="bench"), "job_id", "")) for _ in range(STARTS + 1)]
    beating = running.pop()
    jobs.close()

    def run(*command: str) -> None:
        subprocess.run(command, env=environment, cwd=folder / "home", check=True, stdout=subprocess.DEVNULL)

    measured = Measured(
        STARTS,
        {
            "bare": lambda: run(python, "-c", "pass"),
            "pick": lambda: run(mam, "pick", "--agent-session", LABEL),
            "complete": lambda: run(mam, "complete", running.pop(), "--attempt", "1"),
            "heartbeat": lambda: run(mam, "heartbeat", beating, "--attempt", "1"),
        },
    )
    return [
        Row(
            f"`mam {verb}`, with a config.toml", "`python -c pass`",
            measured.median(verb), measured.median("bare"), "at most 4, aim 2.5",
        )
        for verb in ("pick", "complete", "heartbeat")
    ]  # fmt: skip


def installed(venv: Path) -> tuple[str, str]:
    """mam as a user has it: built and installed with its bytecode, not run from the source tree."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(ROOT)], check=True)
    subprocess.run([str(venv / "bin" / "python"), "-m", "compileall", "-q", str(venv / "lib")], check=False)
    return str(venv / "bin" / "python"), str(venv / "bin" / "mam")


def isolated(folder: Path) -> dict[str, str]:
    home = folder / "home"
    (home / ".config" / "mam").mkdir(parents=True)
    (home / ".config" / "mam" / "config.toml").write_text('default_agent = "codex"\n', encoding="utf-8")
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


# -- the report ------------------------------------------------------------------------------------------------------


def as_table(rows: list[Row]) -> str:
    head = ("what", "median", "against", "median", "ratio", "bar")
    lines = [head, ("---",) * len(head), *(row.cells for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def write_report(table: str) -> None:
    said = (
        f"Measured {time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores, {where()}."
    )
    old = REPORT.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    REPORT.write_text(f"{before}{BEGIN}\n{said}\n\n{table}\n{END}{after}", encoding="utf-8")


def where() -> str:
    """The file system that was written to; everything here depends on it."""
    found = shutil.which("findmnt")
    if found is None:
        return "file system unknown"
    asked = subprocess.run([found, "-no", "FSTYPE", "-T", tempfile.gettempdir()], capture_output=True, text=True)
    return asked.stdout.strip() or "file system unknown"


if __name__ == "__main__":
    main()

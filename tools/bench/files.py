"""A claim in a directory of files, inside a process that is already running."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from mam.audit.mirror import AuditLog
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from tools.bench.common import LABEL, OWNER, PROMPT, Measured, Row, Rows

CLAIMS = 400


def measure_files(folder: Path, many: int) -> Rows:
    small, large = store_with(folder / "small", 100 + CLAIMS), store_with(folder / "large", many)
    audited = Registry(small, AuditLog(str(folder / "logs")))
    size = len(next(iter(Path(large.address).glob("*.json"))).read_bytes())
    bare = bare_write(folder / "bare", size)
    measured = Measured(
        CLAIMS // 2,
        {
            "bare": bare,
            "small": lambda: Registry(small).pick(LABEL, owner=OWNER),
            "large": lambda: Registry(large).pick(LABEL, owner=OWNER),
            "audited": lambda: audited.pick(LABEL, owner=OWNER),
        },
    )
    against = f"write, fsync, rename, fsync(dir) of {size} bytes"
    count = f"{many:,}"
    return [
        Row(f"files: claim, {count} records", against, measured.median("large"), measured.median("bare"), "at most 3"),
        Row(
            f"files: claim, {count} records", "claim, about 400 records",
            measured.median("large"), measured.median("small"), "at most 1.5",
        ),
        Row(
            "files: claim and audit log, about 400 records", against,
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
        "updated_at": "2026-01-02T00:00:00Z", "prompt": PROMPT, "agent": "bench", "agent_session": LABEL,
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

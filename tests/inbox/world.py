"""A directory tree, a store and an inbox without a worker: tests decide how each job ends."""

from __future__ import annotations

import json
import os
import time
import warnings
from typing import TYPE_CHECKING, Any

from mam.inbox.loop import Inbox
from mam.inbox.mirror import TRANSITIONS, schema_problem
from mam.inbox.settings import Settings
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import Query
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mam.inbox.ledger import LedgerRow
    from mam.jobs.record import Job
    from mam.stores.port import Store

WHERE = "acme/shop/main"
MAKE: dict[str, Callable[[str], object]] = {"files": create_files_store, "sqlite": create_sqlite_store}
OPEN: dict[str, Callable[[str], Store]] = {"files": FilesStore, "sqlite": SqliteStore}


def fork() -> int:
    """The test runner has threads; the child uses none of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


class World:
    def __init__(self, folder: Path, kind: str = "files", **settings: Any) -> None:
        self.folder = folder
        self.kind = kind
        self.root = folder / "root"
        self.inbox = self.root / "inbox"
        self.root.mkdir(exist_ok=True)
        self.jobs = folder / "jobs"
        MAKE[kind](str(self.jobs))
        self.settings = Settings(
            **{
                "root": str(self.root),
                "agent": "shell",
                "uids": frozenset({os.geteuid()}),
                "repos": {},
                "settle_seconds": 0.0,
                "linger_seconds": 0.0,
                "jobs_root": str(self.root / ".queue" / "jobs"),
                **settings,
            }
        )
        self.notifications: list[tuple[str, str, str]] = []
        self.complaints: list[str] = []
        self._opened: list[Inbox | Store] = []

    def registry(self) -> Registry:
        store = OPEN[self.kind](str(self.jobs))
        self._opened.append(store)
        return Registry(store)

    def open(self, registry: Registry | None = None) -> Inbox:
        """A registry as the next process would open it."""
        inbox = Inbox(self.settings, registry or self.registry(), self._notify, self.complaints.append)
        self._opened.append(inbox)
        return inbox

    def close(self) -> None:
        for opened in self._opened:
            opened.close()
        self._opened.clear()

    def _notify(self, what: str, row: LedgerRow, _job: Job | None, words: str) -> None:
        self.notifications.append((what, row.rel, words))

    def drop(self, name: str = "x.prompt.md", content: str | bytes = "do it\n", where: str = WHERE) -> Path:
        """Complete and settled: it arrives by rename, with an mtime one minute ago."""
        folder = self.inbox / where
        folder.mkdir(parents=True, exist_ok=True)
        hidden = folder / ".being-written"
        hidden.write_bytes(content if isinstance(content, bytes) else content.encode())
        a_minute_ago = time.time() - 60
        os.utime(hidden, (a_minute_ago, a_minute_ago))
        hidden.rename(folder / name)
        return folder / name

    def all_jobs(self) -> list[Job]:
        return sorted(self.registry().select(Query()), key=lambda job: job.number)

    def only_job(self) -> Job:
        (job,) = self.all_jobs()
        return job

    def files(self, below: str) -> list[str]:
        """Everything below a directory of the root, without hidden files."""
        top = self.root / below
        found = [path for path in top.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return sorted(str(path.relative_to(top)) for path in found)

    def mirrored(self, job_id: str) -> dict[str, Any]:
        """The job.json of a job, after checking it against the schema."""
        folder = self.root / ".queue" / "jobs" / job_id
        record: dict[str, Any] = json.loads((folder / "job.json").read_bytes())
        assert sorted(os.listdir(folder)) == ["job.json", "state"]
        assert schema_problem(record, job_id) is None
        assert (folder / "state").read_text().strip() == record["state"]
        assert record["state"] in TRANSITIONS
        assert ("processed_path" in record) == (record["state"] == "succeeded")
        assert ("failure_reason" in record) == (record["state"] == "failed_final")
        assert ("archived_path" in record) == (record["state"] == "failed_final")
        assert record["inbox_rel"].endswith(".prompt.md")
        assert record["inbox_file"] == str(self.inbox / record["inbox_rel"]).replace(".prompt.md", ".running.md")
        return record

    def steady(self) -> Inbox:
        """After a kill: the next process finishes the work, and then nothing is left to do."""
        inbox = self.open()
        inbox.run_cycle()
        inbox.run_cycle()
        assert not inbox.problems, inbox.problems
        return inbox

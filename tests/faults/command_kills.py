"""Kills a long sequence of commands at one of their system calls each, on a store that is never restored."""

from __future__ import annotations

import random
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from mam.agents.files_directory import FilesDirectory
from mam.agents.lookup import FOUND, MISSING
from mam.audit.sync import AuditLog
from tests.audit.support import history_in, history_in_log
from tests.faults.forked_commands import CommandForker
from tests.faults.invariants import FoldedJournal, check_files, check_no_problems
from tests.faults.store_kinds import StoreKind
from tests.faults.surroundings import Services
from tests.faults.verbs import COMMANDS

if TYPE_CHECKING:
    from mam.stores.port import Store

MOST = {
    "openat": 16, "close": 20, "fcntl": 30, "pread64": 12, "pwrite64": 20, "write": 5, "fsync": 4, "fdatasync": 4,
    "flock": 3, "rename": 3, "renameat": 2, "unlink": 3, "unlinkat": 2, "mkdir": 2, "ftruncate": 3, "utimensat": 2,
}  # fmt: skip
"""How often most commands make a call; few commands reach a later one."""
TELLS = ("register", "publish", "publish started", "complete", "fail", "fail retryably", "release", "cancel")
"""Commands that have an entry in the journal when they exit with 0."""
GENERATIONS = ("first", "second")
PATIENCE = 120.0
WORKERS_LEASE = 1


class CommandKills:
    def __init__(self, store_kind: StoreKind, folder: Path, seed: int) -> None:
        self._store_kind = store_kind
        self._folder = folder
        self._chance = random.Random(f"culling {seed}")
        self._folded = FoldedJournal()
        self.kills = 0
        store_kind.make(folder)
        (folder / ".mam").mkdir()
        (folder / ".mam/config.toml").write_text('on_idle = "stop"\n', encoding="utf-8")
        self._services = Services(store_kind, folder)
        self._forker = CommandForker(store_kind, folder)

    def run(self, moments: int) -> int:
        """Kills every command at so many moments, if it reaches them."""
        try:
            self._live()
            for _ in range(moments):
                # Few commands make one given call; with many calls, none reaches a late one.
                calls = self._chance.sample(sorted(MOST), self._chance.choice((1, 3, 6)))
                moment = {call: self._chance.randint(1, MOST[call]) for call in calls}
                with self._forker.killed_at(moment):
                    for verb in self._chance.sample(sorted(COMMANDS), len(COMMANDS)):
                        self._command(verb, f"{moment}")
                self._live()
            self._finish()
        finally:
            self._forker.close()
            self._services.close()
        return self.kills

    def _live(self) -> None:
        """Registers jobs in every state, for the commands that are killed."""
        for verb in ("register", "register", "register", "pick", "pick", "agents publish", "register for a worker"):
            self._command(verb, "nothing")

    def _command(self, verb: str, moment: str) -> None:
        command = self._said(verb)
        before = self._folded.number
        self._services.prepare(verb)
        code = self._forker.run(command)
        self.kills += code is None
        store = self._store_kind.open(self._folder)
        try:
            self._judge(store)
            assert code != 0 or verb not in TELLS or self._folded.number > before, "acknowledged, but missing"
            self._judge_agents(command.split()[-1] if verb == "agents publish" and code == 0 else None)
            self._services.judge(verb, code)
        except AssertionError as error:
            raise AssertionError(f"mam {command}, killed at {moment}, exit code {code}: {error}") from error
        finally:
            store.close()

    def _said(self, verb: str) -> str:
        jobs: dict[str, list[str]] = {"pending": [], "waiting": [], "running": [], "ended": []}
        for job_id, record in self._folded.records.items():
            jobs["ended" if record["status"] in ("completed", "error", "cancelled") else record["status"]] += [job_id]
        one = {status: self._chance.choice(found) if found else "nobody" for status, found in jobs.items()}
        attempt = self._folded.records.get(one["running"], {}).get("attempt", 1)
        chance, generation = self._chance.randint(1, 9), self._chance.choice(GENERATIONS)
        names = {**one, "attempt": attempt, "chance": chance, "generation": generation, **self._services.names}
        return COMMANDS[verb].format(**names)

    def _judge(self, store: Store) -> None:
        tail = self._folded.follow(store)
        for job_id in {entry.job_id for entry in tail}:
            self._folded.check_job(store, job_id)
        check_no_problems(store)
        store.pauses()

    def _judge_agents(self, generation: str | None) -> None:
        """Every record of the directory is whole, and the one that was acknowledged is there."""
        for lookup in FilesDirectory(str(self._folder / "agents")).read_all():
            assert lookup.kind in (FOUND, MISSING), f"{lookup.agent_id}: {lookup.reason}"
            if generation is not None:
                assert lookup.record is not None, "a record was acknowledged, but is missing"
                assert lookup.record.generation_id == generation

    def _go_on(self) -> None:
        """Without further kills, everything that was begun ends."""
        for verb in ("inbox once", "migrate"):
            self._command(verb, "nothing")
        ends = time.monotonic() + PATIENCE
        while self._open_for_workers():
            assert time.monotonic() < ends, f"no worker ends {self._open_for_workers()}"
            self._command("worker", "nothing")
        assert self._forker.run(self._said("relay")) == 0, "the relay does not end"

    def _open_for_workers(self) -> list[str]:
        """Without the jobs that a command other than a worker has set running, with a long lease."""
        jobs = {job_id: job for job_id, job in self._folded.records.items() if job["agent_session"] == "shop"}
        task = {job_id for job_id, job in jobs.items() if (job["lease"] or {}).get("seconds") == WORKERS_LEASE}
        return [job_id for job_id, job in jobs.items() if job["status"] == "pending" or job_id in task]

    def _finish(self) -> None:
        self._go_on()
        store = self._store_kind.open(self._folder)
        try:
            self._folded.follow(store)
            self._folded.check_everything(store)
            self._services.finish(store, self._folded.records)
            check_files(self._store_kind, self._folder, store)
            AuditLog(str(self._folder / "logs")).follow(store)
            assert history_in_log(self._folder / "logs") == history_in(store)
        finally:
            store.close()
        for verb in ("config set", "trust", "skill install"):
            assert self._forker.run(self._said(verb)) == 0, f"mam {verb} was killed, and cannot be said again"
        for file in (self._folder / "home").rglob("*.toml"):
            tomllib.loads(file.read_text(encoding="utf-8"))
        said = self._forker.said.read_text(encoding="utf-8")
        assert "Traceback" not in said, said
        assert "bug in mam" not in said, said

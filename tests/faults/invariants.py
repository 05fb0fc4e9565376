"""What must hold for a store after any fault, and for an act whose process was killed in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mam.stores.files.records import read_stamp
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from tests.faults.store_kinds import StoreKind

if TYPE_CHECKING:
    from mam.stores.port import Entry, Store
    from tests.sample_jobs import JobHistory, SampleJobs

MOVES = {
    "pending": ("running", "waiting", "error", "cancelled"),
    "waiting": ("pending", "error", "cancelled"),
    "running": ("completed", "error", "waiting", "pending", "cancelled"),
}
"""The transitions of the contract. They are repeated here because the product's own table may be wrong."""


class FoldedJournal:
    """The records that result from a journal, folded in the simplest way. It follows one store from kill to kill."""

    def __init__(self, *, gapless: bool = True) -> None:
        """PostgreSQL numbers an entry before it commits, so its numbers may have gaps."""
        self._gapless = gapless
        self.offset: str | None = None
        self.number = 0
        self.records: dict[str, dict[str, Any]] = {}
        self.archived: set[str] = set()

    def copied(self) -> FoldedJournal:
        other = FoldedJournal(gapless=self._gapless)
        other.offset, other.number, other.archived = self.offset, self.number, {*self.archived}
        other.records = {job_id: {**record} for job_id, record in self.records.items()}
        return other

    def follow(self, store: Store) -> list[Entry]:
        found = list(store.entries(self.offset))
        self.fold(found)
        return found

    def fold(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            follows = entry.number == self.number + 1 or not self._gapless
            assert follows, f"entry {entry.number} comes after {self.number}"
            self.number, self.offset = entry.number, entry.offset
            for line in entry.lines:
                _check_move(entry.job_id, line)
            if entry.fields is None:
                self.records.pop(entry.job_id)
                self.archived.add(entry.job_id)
            else:
                self.records.setdefault(entry.job_id, {}).update(entry.fields)

    def check_job(self, store: Store, job_id: str) -> None:
        """The record agrees with the journal, the event numbers have no gap, and the job has ended at most once."""
        if job_id in self.archived:
            kept = store.archived(job_id)
            assert kept is not None, f"{job_id} left the registry and is not in the archive"
            assert _numbers(kept.events) == list(range(1, kept.job.last_seq + 1))
            return
        job = store.get(job_id)
        assert job.to_json() == self.records[job_id], f"{job_id}: journal and record differ"
        events = store.events(job_id)
        assert _numbers(events) == list(range(1, job.last_seq + 1)), f"{job_id}: {_numbers(events)} of {job.last_seq}"
        endings = sum(event.get("event") in ("completed", "error") for event in events)
        assert endings == int(job.status.ended), f"{job_id} is {job.status} and has ended {endings} times"

    def check_everything(self, store: Store) -> None:
        found = {job.job_id for job in store.select(Query())}
        assert found == {*self.records}, f"journal and registry differ: {found ^ {*self.records}}"
        assert {kept.job.job_id for kept in store.archive_contents()} == self.archived
        for job_id in (*self.records, *self.archived):
            self.check_job(store, job_id)
        check_no_problems(store)


def _numbers(events: list[dict[str, Any]]) -> list[int]:
    """A marker may cover several numbers."""
    return [number for event in events for number in range(event["seq"], event.get("upto", event["seq"]) + 1)]


def _check_move(job_id: str, line: dict[str, Any]) -> None:
    if line["event"] == "status_changed":
        assert line["to"] in MOVES.get(line["from"], ()), f"{job_id}: {line['from']} -> {line['to']}"


def act(store: Store) -> None:
    """Any act completes the record files that a killed one left behind; this one touches no job."""
    store.save_position("the judge", "0")


def check_no_problems(store: Store) -> None:
    """mam has set nothing aside, and no file differs from the registry, whichever process was killed before."""
    problems = store.problems()
    assert problems == [], f"problems: {problems}"


def check_store(store_kind: StoreKind, place: Path, store: Store) -> FoldedJournal:
    """Records are whole, event numbers complete, the journal agrees, and there is no problem and no leftover file."""
    folded = FoldedJournal()
    folded.follow(store)
    folded.check_everything(store)
    check_files(store_kind, place, store)
    return folded


def check_files(store_kind: StoreKind, place: Path, store: Store) -> None:
    """After any process has acted, the record files equal the rows, and the event logs equal the journal."""
    if store_kind.name != "files":
        return
    act(store)
    path = store_kind.path(place)
    jobs = {job.job_id: job for job in store.select(Query())}
    assert {file.stem for file in path.glob("*.json")} == jobs.keys(), "record files of other jobs"
    for job_id, job in jobs.items():
        text = (path / f"{job_id}.json").read_bytes()
        stamp = read_stamp(text)
        assert stamp is not None, f"{job_id}: not as mam wrote it"
        assert (stamp.epoch, stamp.version) == (store.journal_id, version_of(store, job_id)), f"{job_id}: {stamp}"
        assert without_stamp(text) == job.to_json(), f"{job_id}: record file and row differ"
        assert logged_events(path, job_id) == store.events(job_id), f"{job_id}: event log and journal differ"
    logs = {file.name.removesuffix(".events.log") for file in path.glob("*.events.log")}
    assert logs <= jobs.keys(), f"event logs of other jobs: {logs - jobs.keys()}"


def without_stamp(text: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(text)
    del fields["registry"]
    return fields


def logged_events(path: Path, job_id: str) -> list[dict[str, Any]]:
    """Every line of the job's event log, which must be whole."""
    file = path / f"{job_id}.events.log"
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def version_of(store: Store, job_id: str) -> int | None:
    assert isinstance(store, FilesStore)
    return store.versions([job_id]).get(job_id)


def check_history(expected: JobHistory, told: JobHistory, *, acknowledged: bool) -> None:
    """An acknowledged verb is complete. Otherwise some of its acts are there, from the first on, each complete."""
    assert not acknowledged or told == expected, f"acknowledged, but missing: {told}"
    beginnings = [expected[:acts] for acts in range(len(expected) + 1)]
    assert told in beginnings, f"incomplete or different: {told}"


def looked_at(store_kind: StoreKind, place: Path, sample: SampleJobs) -> JobHistory:
    """Checks the store as the next process finds it, and returns the history of the jobs."""
    if store_kind.name == "files":
        for job_id in sample.job_ids:
            assert (store_kind.path(place) / f"{job_id}.json").exists(), f"job {job_id} has no record file"
    store = store_kind.open(place)
    try:
        check_store(store_kind, place, store)
        return sample.history(store)
    finally:
        store.close()

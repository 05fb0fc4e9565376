"""Rows that cannot be read: out of the way of those who claim, passed over by those who list, named for a person."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mam.errors import BadRecord
from mam.stores.port import Problem
from mam.stores.sql.gate import Gate
from mam.stores.sql.rows import Row, job_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    from mam.jobs.record import Job

    T = TypeVar("T")


def check_same(row: Row, status: str, label: str, store: str) -> None:
    """That the record says of itself what the row was chosen by."""
    if row.job.status != status or row.job.agent_session != label:
        raise contradiction(row.record, store)


def check_moved(row: Row, moved: Job | None, store: str) -> None:
    """That the record agrees that its time has come; else it would be due for ever, and be asked again and again."""
    if moved is None:
        raise contradiction(row.record, store)


def contradiction(record: str, store: str) -> BadRecord:
    return BadRecord(file=store, problem="one of its records contradicts its row", row=record)


class SqlDamage(ABC):
    """The part of an SQL store that looks at what others have spoilt."""

    address: str

    def __init__(self) -> None:
        self._spoilt: dict[str, str] = {}
        """By their ids, what the last list passed over, and why."""

    @abstractmethod
    def _act(self, do: Callable[..., T], *given: Any) -> T: ...

    @abstractmethod
    def _rows(self, query: str, **values: Any) -> list[Any]: ...

    @property
    @abstractmethod
    def _gate(self) -> Gate: ...

    def _past_damage(self, do: Callable[..., T], *given: Any) -> T:
        """Does it again without the row that it stumbled over, whoever set that aside first. Who meets the same row
        twice has not been able to, so this comes to an end."""
        met: set[str] = set()
        while True:
            try:
                return do(*given)
            except BadRecord as bad:
                record = bad.facts.get("row")
                if not isinstance(record, str) or record in met:
                    raise
                met.add(record)
                self._act(lambda: self._rows("set aside", record=record))  # noqa: B023

    def _readable(self, found: Iterable[Any]) -> list[Row]:
        """Of those that concern each other the ones that can be read; the others have been left as they are."""
        rows = []
        for record, prompt, root in found:
            try:
                rows.append(Row(record, prompt, root, self.address))
            except BadRecord:
                continue
        return rows

    def _listed(self, found: Iterable[Any]) -> Iterator[Job]:
        for record, prompt, job_id, _number in found:
            try:
                job = job_of(record, prompt, self.address)
            except BadRecord as bad:
                self._spoilt[job_id] = str(bad.facts["problem"])
                continue
            yield job

    def problems(self) -> list[Problem]:
        found = dict(self._spoilt)
        for record, prompt, job_id, number, status, label, exclusive in self._rows("those set aside"):
            try:
                check_same(Row(record, prompt, None, self.address), status, label, self.address)
                job = job_of(record, prompt, self.address)
                if (job.job_id, job.number) != (job_id, number):
                    raise contradiction(record, self.address)
            except BadRecord as bad:
                found[job_id] = f"{bad.facts['problem']}; nobody claims it until it is mended"
            else:
                self._act(self._take_back, job_id, exclusive)
        return [Problem(file=f"{self.address} job {job_id}", problem=why) for job_id, why in found.items()]

    def _take_back(self, job_id: str, exclusive: str | None) -> None:
        """Somebody has mended it."""
        self._rows("take back", job_id=job_id)
        if exclusive is not None:
            self._gate.rebalance(exclusive)

"""The jobs that a query means, newest first, without walking through a million that ended to find the few it wants.

Jobs that have not ended are found by the indexes that claims and sweeps keep anyway; no index of their own slows a
claim down. Where they are many, walking finds them soon enough.
"""

from __future__ import annotations

import json
import sys

from mam.jobs.status import CANCELLED, COMPLETED, ERROR, Status
from mam.stores.sql.store import PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mam.stores.port import Query

FEW = 10_000
FAILED = frozenset({ERROR, CANCELLED})


class Selection:
    def __init__(self, ask: Callable[..., list[Any]], query: Query) -> None:
        self._ask = ask
        self._statuses = frozenset(Status) if query.statuses is None else query.statuses
        self._filters = {"label": query.label, "since": query.since}

    def rows(self) -> Iterator[Any]:
        if COMPLETED in self._statuses:
            return self._pages("select", self._statuses)
        failed, still_open = self._statuses & FAILED, self._statuses - FAILED
        if not still_open:
            return self._pages("select failed", failed)
        numbers = [row[0] for row in self._ask("open numbers", limit=FEW)]
        if len(numbers) == FEW:
            return self._pages("select", self._statuses)
        if not failed:
            return self._numbered(numbers, still_open)
        from heapq import merge

        ordered = (self._pages("select failed", failed), self._numbered(numbers, still_open))
        return merge(*ordered, key=lambda row: -int(row[3]))

    def _pages(self, query: str, statuses: frozenset[Status]) -> Iterator[Any]:
        asked, below = self._asked(statuses), sys.maxsize
        while rows := self._ask(query, below=below, limit=PAGE, **asked):
            below = rows[-1][3]
            yield from rows

    def _numbered(self, numbers: list[int], statuses: frozenset[Status]) -> Iterator[Any]:
        asked = self._asked(statuses)
        for first in range(0, len(numbers), PAGE):
            yield from self._ask("select numbered", numbers=json.dumps(numbers[first : first + PAGE]), **asked)

    def _asked(self, statuses: frozenset[Status]) -> dict[str, Any]:
        return {**self._filters, "statuses": json.dumps(sorted(statuses))}

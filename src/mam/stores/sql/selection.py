"""Selects jobs, newest first, by the index that finds them fastest among a million ended jobs."""

from __future__ import annotations

import json
import sys
from heapq import merge

from mam.jobs.status import COMPLETED, ENDED, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mam.stores.port import Query

FIRST_PAGE, PAGE = 51, 500
"""Rows read at once: a screenful and one more first, and never so many that a long list delays checkpoints."""


def select_rows(ask: Callable[..., list[Any]], query: Query, number_at: int) -> Iterator[Any]:
    """Rows of `{columns}`; `number_at` is the index of the number."""
    statuses = frozenset(Status) if query.statuses is None else query.statuses

    def pages(name: str, wanted: frozenset[Status]) -> Iterator[Any]:
        asked = {"label": query.label, "since": query.since, "statuses": json.dumps(sorted(wanted))}
        below, limit = sys.maxsize if query.below is None else query.below, FIRST_PAGE
        while rows := ask(name, below=below, limit=limit, **asked):
            yield from rows
            below, limit = rows[-1][number_at], min(limit * 4, PAGE)

    if query.asking:
        return pages("select asking", statuses)
    if COMPLETED in statuses:
        return pages("select" if query.label is None else "select label", statuses)
    parts = (("select failed", statuses & ENDED), ("select open", statuses - ENDED))
    found = [pages(name, wanted) for name, wanted in parts if wanted]
    return merge(*found, key=lambda row: -int(row[number_at]))

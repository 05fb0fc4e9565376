"""The raw record of a job, its history and its events."""

from __future__ import annotations

import json

from mam.serve.api.shown import job_json
from mam.serve.pages.moments import When, clock
from mam.serve.pages.rows import Chip, chip_of, title_of
from mam.util.frozen import Frozen
from mam.util.safe_text import many_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.reading import AuthorizedReading
    from mam.jobs.change import AuditRecord

LINES_SHOWN, LINE_LIMIT = 1_000, 600


class HistoryLine(Frozen):
    at: When | None
    event: str
    words: str


class RecordPage(Frozen):
    job_id: str
    short: str
    title: str
    chip: Chip
    record: str
    history: tuple[HistoryLine, ...]
    left_out: int


def record_page(reading: AuthorizedReading, name: str) -> RecordPage:
    job = reading.get(name)
    lines = reading.history(job.job_id)
    shown = lines[-LINES_SHOWN:]
    return RecordPage(
        job_id=job.job_id, short=job.job_id[:8], title=title_of(job), chip=chip_of(job),
        record=many_lines(json.dumps(job_json(job), indent=2, ensure_ascii=False, default=str)),
        history=tuple(_line(line) for line in shown), left_out=len(lines) - len(shown),
    )  # fmt: skip


def _line(line: AuditRecord) -> HistoryLine:
    payload = line.get("payload")
    event = str(payload.get("event", "?")) if isinstance(payload, dict) else str(line.get("event", "?"))
    facts = payload if isinstance(payload, dict) else line
    words = " · ".join(
        _fact(name, value) for name, value in facts.items() if name not in _KNOWN and value not in (None, "", {})
    )
    text = one_line(words)
    return HistoryLine(
        at=clock(str(line.get("timestamp"))), event=one_line(event)[:60],
        words=text if len(text) <= LINE_LIMIT else f"{text[:LINE_LIMIT]}…",
    )  # fmt: skip


_KNOWN = ("event", "timestamp", "job_id", "payload", "topic", "entry", "digest", "schema_version", "claim_id")
"""Facts that another column shows, or that say nothing to a person."""


def _fact(name: str, value: object) -> str:
    if name == "detail":
        return str(value)
    shown = value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, default=str)
    return f"{name} {shown}"

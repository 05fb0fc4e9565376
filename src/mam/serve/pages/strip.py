"""The life of a job as one strip: waits, attempts, questions and the end, each as wide as it took. Pure.

It is derived from the history of the job alone. A part that took no time still gets the least width that can be seen.
"""

from __future__ import annotations

from mam.errors import MamError
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING
from mam.serve.pages.moments import words_of
from mam.util.clock import parse_time
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.change import AuditRecord

PARTS_MOST, LEAST_SHARE = 24, 0.03
_LOOKS = {PENDING: "idle", WAITING: "wait", RUNNING: "run", COMPLETED: "ok", ERROR: "bad", CANCELLED: "idle"}
ASKED = "ask"


class Part(Frozen):
    look: str
    word: str
    took: str
    share: int
    """Parts of a thousand of the width."""
    left: int
    """Where it begins, in thousandths."""
    detail: str = ""


def strip_of(lines: Iterable[AuditRecord], now_ms: int) -> tuple[Part, ...]:
    """`lines` are the history lines of one job, in order."""
    spans = _merged(_spans(lines, now_ms))
    if not spans:
        return ()
    whole = sum(span.seconds for span in spans) or len(spans)
    shares = [max(LEAST_SHARE, span.seconds / whole) for span in spans]
    total, parts, left = sum(shares), list[Part](), 0.0
    for span, share in zip(spans, shares, strict=True):
        width = share / total
        parts.append(Part(look=span.look, word=span.word, took=words_of(int(span.seconds)) if span.seconds else "",
                          share=round(width * 1000), left=round(left * 1000), detail=span.detail))  # fmt: skip
        left += width
    return tuple(parts)


class _Span(Frozen):
    look: str
    word: str
    seconds: float
    detail: str = ""


def _spans(lines: Iterable[AuditRecord], now_ms: int) -> list[_Span]:
    spans: list[_Span] = []
    look, word, detail, since = "", "", "", 0
    attempt, is_over = 0, False

    def close(at_ms: int) -> None:
        if look:
            spans.append(_Span(look=look, word=word, seconds=max(0, at_ms - since) / 1000, detail=detail))

    for line in lines:
        at_ms = _ms(line.get("timestamp"))
        event = line.get("event")
        if at_ms is None or event not in ("registered", "status_changed", "asked", "answered", "withdrawn"):
            continue
        close(at_ms)
        since = at_ms
        if event == "asked":
            look, word, detail = ASKED, "asks", one_line(str(line.get("tool") or line.get("kind") or ""))
        elif event in ("answered", "withdrawn"):
            look, word, detail = "run", "", _answer(line)
        else:
            status = str(line.get("to") or line.get("status"))
            if status == RUNNING:
                attempt = int(line.get("attempt") or attempt + 1)
            if line.get("losses"):
                spans.append(_Span(look="bad", word="lost", seconds=0, detail="the lease ran out"))
            look, is_over = _LOOKS.get(status, "idle"), status in (COMPLETED, ERROR, CANCELLED)  # type: ignore[call-overload]
            word = f"attempt {attempt}" if status == RUNNING else status
            detail = one_line(str(line.get("owner") or line.get("reason") or ""))
    if is_over:
        spans.append(_Span(look=look, word=word, seconds=0, detail=detail))
    else:
        close(now_ms)
    return spans


def _answer(line: AuditRecord) -> str:
    by = line.get("by") or line.get("decided") or ""
    return one_line(f"{line.get('answer') or 'answered'} by {by}" if by else "")


def _merged(spans: list[_Span]) -> list[_Span]:
    """Very many parts become fewer: equal neighbours are one, and the oldest are left out."""
    merged: list[_Span] = []
    for span in spans:
        if merged and merged[-1].look == span.look and merged[-1].word == span.word and not span.detail:
            merged[-1] = merged[-1].replace(seconds=merged[-1].seconds + span.seconds)
        else:
            merged.append(span)
    if len(merged) <= PARTS_MOST:
        return merged
    left_out = sum(span.seconds for span in merged[: -PARTS_MOST + 1])
    return [_Span(look="idle", word="earlier", seconds=left_out), *merged[-PARTS_MOST + 1 :]]


def _ms(text: object) -> int | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except (ValueError, MamError):
        return None

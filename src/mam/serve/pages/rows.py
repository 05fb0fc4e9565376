"""A job as a row of a list: its state as shape, word and colour, and one sentence about now. Pure."""

from __future__ import annotations

from mam.jobs.activity import ASKS, NEEDS_PERMISSION, QUIET
from mam.jobs.changed_files import changes_of
from mam.jobs.overview import cost_of, seconds_of
from mam.jobs.question import PERMISSION, first_line, open_questions
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING
from mam.serve.pages.actions import short_id
from mam.serve.pages.moments import When, age, words_of
from mam.util import safe_text
from mam.util.clock import parse_time
from mam.util.figures import cost_words, money
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.activity import State
    from mam.jobs.record import Job, Json

TITLE_LIMIT, NOW_LIMIT = 140, 240
PAUSED = "paused"


class Chip(Frozen):
    """A state: `look` selects shape and colour, `word` says it."""

    look: str
    word: str


_CHIPS = {
    PENDING: Chip(look="idle", word="pending"), WAITING: Chip(look="wait", word="waiting"),
    RUNNING: Chip(look="run", word="running"), COMPLETED: Chip(look="ok", word="completed"),
    ERROR: Chip(look="bad", word="error"), CANCELLED: Chip(look="idle", word="cancelled"),
}  # fmt: skip


class JobRow(Frozen):
    job_id: str
    short: str
    version: str
    """Changes with everything that the row shows but ages; a script leaves equal rows alone."""
    chip: Chip
    title: str
    now: str
    agent: str
    label: str
    host: str
    tries: str
    age: When | None
    took: str
    cost: str
    group: str


def job_row(job: Job, state: State | None, reason: str, now_ms: int) -> JobRow:
    """`state` is known of running jobs; `reason` says why a job is not running."""
    chip = chip_of(job, state)
    now = sentence_of(job, state) or reason
    tries = job.attempt + _earlier_tries(job)
    cost = cost_of(job) or {}
    took = seconds_of(job) if job.status.ended else None
    usd = cost.get("usd")
    since = job.ended_at if job.status.ended else job.claimed_at if job.status is RUNNING else job.created_at
    return JobRow(
        job_id=job.job_id, short=short_id(job), version=f"{job.updated_at} {job.status} {chip.word}", chip=chip,
        title=title_of(job), now=_cut(now), agent=one_line(job.agent)[:40], label=one_line(job.agent_session)[:60],
        host=one_line(job.host or "")[:60], tries="" if tries < 2 else f"try {tries}", age=age(since, now_ms),
        took="" if took is None else words_of(int(took)),
        cost=money(float(usd)) if isinstance(usd, int | float) else "", group=group_of(job),
    )  # fmt: skip


def title_of(job: Job) -> str:
    line = safe_text.first_line(job.prompt).lstrip("# ")
    return (line if len(line) <= TITLE_LIMIT else f"{line[: TITLE_LIMIT - 1]}…") or "(an empty prompt)"


def chip_of(job: Job, state: State | None = None) -> Chip:
    if job.status is RUNNING and state is not None:
        if state.state in (ASKS, NEEDS_PERMISSION):
            return Chip(look="ask", word="asks")
        if state.state == QUIET:
            return Chip(look="quiet", word="quiet")
    if job.status is COMPLETED and not job.checked:
        return Chip(look="ok", word="completed")
    return _CHIPS[job.status]


def group_of(job: Job) -> str:
    if job.status is RUNNING:
        return "asks" if open_questions(job) else "running"
    return "queued" if not job.status.ended else "ended"


def sentence_of(job: Job, state: State | None) -> str:
    """What happens now, or what came of it; empty if only a reason can tell."""
    if job.status is RUNNING:
        return _running(job, state)
    if job.status is COMPLETED:
        return completed_words(job)
    if job.status is ERROR:
        return one_line(job.reason or "it failed without a reason")
    if job.status is CANCELLED:
        return one_line(job.reason or "cancelled")
    return ""


def completed_words(job: Job) -> str:
    """`1 file +6 −2 on mam/fix · checks passed`."""
    changes, parts = changes_of(job), []
    if changes is not None and changes.files is not None:
        names = "1 file" if changes.files == 1 else f"{changes.files:,} files"
        where = "" if changes.shared or not changes.branch else f" on {changes.branch}"
        parts.append(
            f"{names} +{changes.added or 0} −{changes.removed or 0}{where}" if changes.files else "no file changed"
        )
    if job.checked:
        parts.append("checks passed")
    elif job.expected_artifacts:
        parts.append("not checked")
    if not parts and job.result:
        parts.append(safe_text.first_line(job.result))
    return one_line(" · ".join(parts) or "it expected nothing to check")


def _running(job: Job, state: State | None) -> str:
    asked = open_questions(job)
    if asked:
        first = asked[0]
        command = (first.input or {}).get("command")
        if first.kind == PERMISSION and isinstance(command, str):
            return one_line(f"wants to run: {first_line(command)}")
        return one_line(first_line(first.text))
    if job.agent == "human":
        return f"a person has it: {one_line(job.owner or 'unknown')}"
    if state is None:
        return ""
    if state.state == QUIET:
        why = state.why or ""
        return one_line(f"no sign of life; last: {why}" if why and not why.startswith("quiet for ") else why or "quiet")
    return one_line(state.why or state.state)


def spent_words(job: Job) -> list[str]:
    """Tokens, money and time of the latest attempt."""
    cost: Json = cost_of(job) or {}
    words = cost_words({**cost.get("tokens", {}), "usd": cost.get("usd")})
    took = seconds_of(job)
    return [*words, *([words_of(int(took))] if took is not None else [])]


def _earlier_tries(job: Job) -> int:
    return 1 if job.retry_of else 0


def _cut(text: str) -> str:
    return text if len(text) <= NOW_LIMIT else f"{text[: NOW_LIMIT - 1]}…"


def is_after(text: str | None, seen: str | None) -> bool:
    """Whether a time is later than another one; False if either is unknown."""
    try:
        return text is not None and seen is not None and parse_time(text) > parse_time(seen)
    except ValueError:
        return False

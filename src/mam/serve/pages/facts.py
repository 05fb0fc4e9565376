"""What the agent claimed, what mam found, and what a person judged, side by side. Pure."""

from __future__ import annotations

from mam.jobs.question import DENY, PERMISSION, questions_of
from mam.jobs.status import COMPLETED, ERROR
from mam.serve.pages import markdown
from mam.serve.pages.moments import When, ago
from mam.util.frozen import Frozen
from mam.util.safe_text import many_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job

GOOD, BAD, NEUTRAL = "good", "bad", "neutral"
TEXT_LIMIT, OUTPUT_LIMIT, ARTIFACTS_SHOWN = 600, 4_000, 12


class Fact(Frozen):
    look: str
    text: str
    """Inert HTML if it is Markup, otherwise plain text."""
    detail: str = ""
    """Several lines, folded."""
    at: When | None = None


def claimed(job: Job) -> tuple[Fact, ...]:
    """The words of the agent, which mam does not trust."""
    said = job.said or {}
    text = said.get("detail") or said.get("result") or job.result or ""
    if isinstance(text, str) and text.strip():
        return (Fact(look=NEUTRAL, text=markdown.to_html(_bounded(text))),)
    status = said.get("status")
    if isinstance(status, str):
        return (Fact(look=NEUTRAL, text=f"It reported {one_line(status)}, without a word."),)
    return (Fact(look=NEUTRAL, text="It said nothing about its end." if job.status.ended else "Nothing yet."),)


def found(job: Job) -> tuple[Fact, ...]:
    checks = job.checks or {}
    facts: list[Fact] = []
    for artifact in (checks.get("artifacts") or ())[:ARTIFACTS_SHOWN]:
        path, size = one_line(_relative(job, str(artifact.get("path")))), artifact.get("size")
        facts.append(Fact(look=GOOD, text=f"{path} is there{f' ({size_words(size)})' if type(size) is int else ''}"))
    script = checks.get("script")
    if isinstance(script, dict):
        name = one_line(str((job.validation or {}).get("script") or "the validation script")).rpartition("/")[2]
        code = script.get("exit_code")
        output = many_lines(str(script.get("output") or "").strip())[-OUTPUT_LIMIT:]
        facts.append(
            Fact(look=GOOD if code == 0 else BAD, text=f"{name} ended with {one_line(str(code))}", detail=output)
        )
    if checks.get("problem"):
        facts.append(Fact(look=BAD, text=one_line(str(checks["problem"]))))
    if not facts and job.expected_artifacts and not job.status.ended:
        names = ", ".join(job.expected_artifacts[:ARTIFACTS_SHOWN])
        facts.append(Fact(look=NEUTRAL, text=one_line(f"It has to leave {names}.")))
    if job.losses:
        facts.append(Fact(look=BAD, text=f"Lost {job.losses} of {job.max_losses} times: its lease ran out."))
    denials = sum(one.kind == PERMISSION and one.answer == DENY for one in questions_of(job))
    if denials:
        facts.append(Fact(look=NEUTRAL, text=f"{denials} permission{'s' * (denials != 1)} denied."))
    return tuple(facts) or (_nothing_found(job),)


def judged(job: Job, now_ms: int) -> tuple[Fact, ...]:
    facts = []
    if job.applied:
        how = f"Applied by {one_line(str(job.applied.get('by')))}"
        branch = job.applied.get("branch")
        facts.append(Fact(look=GOOD, text=f"{how} to {one_line(str(branch))}" if branch else how,
                          at=ago(_text(job.applied.get("at")), now_ms)))  # fmt: skip
    if job.seen:
        facts.append(Fact(look=GOOD, text=f"Seen by {one_line(str(job.seen.get('by')))}",
                          at=ago(_text(job.seen.get("at")), now_ms)))  # fmt: skip
    if not facts:
        text = "No one has looked at it yet." if job.status.ended else "It has not ended."
        facts.append(Fact(look=BAD if job.status is ERROR else NEUTRAL, text=text))
    return tuple(facts)


def _nothing_found(job: Job) -> Fact:
    if not job.status.ended:
        return Fact(look=NEUTRAL, text="Nothing to check was promised.")
    if job.status is COMPLETED and not job.expected_artifacts and job.validation is None:
        return Fact(look=NEUTRAL, text="Nothing to check was promised, so nothing was checked.")
    return Fact(look=NEUTRAL, text="Nothing was checked.")


def size_words(size: int) -> str:
    """`210 bytes`, `2.1 kB`, `4.0 MB`."""
    for unit, bytes_ in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size} bytes"


def _bounded(text: str) -> str:
    """Its first paragraphs."""
    return text.strip() if len(text) <= TEXT_LIMIT else f"{text.strip()[:TEXT_LIMIT]}…"


def _relative(job: Job, path: str) -> str:
    place = (job.run or {}).get("place")
    return path.removeprefix(f"{place}/") if isinstance(place, str) else path


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

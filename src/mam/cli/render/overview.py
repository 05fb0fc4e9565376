"""The overview of a job as styled lines: one titled section for each question that a person has. Pure."""

from __future__ import annotations

from mam.cli.render.prose import cell_length, cut, fit, prose, safe, wrap
from mam.cli.render.question import whole_lines
from mam.jobs.overview import changes_of, cost_of, next_steps, seconds_of, where
from mam.jobs.question import count_open, open_questions
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING
from mam.util.clock import parse_time
from mam.util.figures import cost_words, duration
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.cli.render.prose import StyledLine
    from mam.jobs.overview import Overview
    from mam.jobs.record import Job, Json

TITLE_WIDTH, WIDTH_MOST = 11, 110
PROMPT_LINES, RESULT_LINES, SCRIPT_LINES, RELATIVES, QUESTION_LINES = 4, 12, 4, 6, 40
ICONS = {PENDING: "○", WAITING: "◷", RUNNING: "▶", COMPLETED: "✔", ERROR: "✖", CANCELLED: "⊘"}
COLOURS = {
    PENDING: "cyan", WAITING: "blue", RUNNING: "yellow", COMPLETED: "green", ERROR: "red", CANCELLED: "dim",
}  # fmt: skip
_RELATIONS = {
    "retry_of": "the retry of", "retried_as": "retried as", "continues": "continues", "continued_by": "continued by",
    "parent": "child of", "child": "parent of", "after": "after",
}  # fmt: skip


def overview_lines(overview: Overview, now_ms: int, width: int) -> list[StyledLine]:
    width = max(40, min(width, WIDTH_MOST))
    room = width - TITLE_WIDTH - 2
    job = overview.job
    lines = [_heading(job, now_ms), *_prompt(job, width), []]
    sections = [
        ("why", [line for sentence in overview.why for line in wrap([(safe(sentence), "")], room)]),
        ("asks", _questions(job, room)),
        ("result", _result(job, room)),
        ("changes", _changes(job, now_ms)),
        ("checks", _checks(job, room)),
        ("cost" if cost_of(job) else "took", _cost(job)),
        ("where", _where(job, room)),
        ("chain", _chain(overview)),
        ("seen", _seen(job, now_ms)),
        ("next", _next(overview)),
    ]
    for title, content in sections:
        lines += [[("  ", ""), ((title if not at else "").ljust(TITLE_WIDTH), "bold"), *line]
                  for at, line in enumerate(content)]  # fmt: skip
    return [fit(line, width) for line in lines]


def _heading(job: Job, now_ms: int) -> StyledLine:
    label = "" if job.agent_session == job.agent else f" for {safe(job.agent_session)}"
    age = format_age(now_ms - parse_time(job.created_at))
    unchecked = " (unchecked)" if job.status is COMPLETED and not job.checked else ""
    asks = " (asks)" if job.status is RUNNING and count_open(job) else ""
    status = f"{ICONS[job.status]} {job.status}{unchecked}{asks}"
    rest = f"  {safe(job.agent)}{label}, registered {age} ago"
    return [(job.job_id[:8], "bold"), ("  ", ""), (status, COLOURS[job.status]), (rest, "dim")]


def _prompt(job: Job, width: int) -> list[StyledLine]:
    said = [line for line in job.prompt.split("\n") if line.strip()]
    lines = [line for text in said[:PROMPT_LINES] for line in wrap([(safe(text), "")], width - 2, "  ", "  ")]
    more = len(said) > PROMPT_LINES or len(lines) > PROMPT_LINES
    hint = f"  … `mam get {job.job_id[:8]} --field prompt` prints all of it"
    return [*lines[:PROMPT_LINES], *([[(hint, "dim")]] if more else [])]


def _questions(job: Job, room: int) -> list[StyledLine]:
    lines: list[StyledLine] = []
    for question in open_questions(job):
        name = f"{job.job_id[:8]}.{question.number}"
        whole = whole_lines(question, room - 2)
        lines += [[("? " if not at else "  ", "bold magenta"), *line] for at, line in enumerate(whole[:QUESTION_LINES])]
        more = len(whole) - QUESTION_LINES
        hint = f"{name}; {more} more lines, which `mam answer {name}` shows" if more > 0 else name
        lines.append([(f"  {hint}", "dim")])
    return lines


def _result(job: Job, room: int) -> list[StyledLine]:
    if not job.result or not job.result.strip():
        return []
    lines = prose(job.result.strip()[: RESULT_LINES * 400], room)
    if len(lines) <= RESULT_LINES:
        return lines
    hint = f"… `mam result {job.job_id[:8]}` prints all of it"
    return [*lines[:RESULT_LINES], [(hint, "dim")]]


def _changes(job: Job, now_ms: int) -> list[StyledLine]:
    changes = changes_of(job)
    lines = [changes_line(changes)] if changes else []
    if changes and changes.get("shared") is True and changes.get("files"):
        lines.append([("in a shared directory: may include others' changes", "dim")])
    if job.applied:
        branch = job.applied.get("branch")
        target = f"applied to {safe(str(branch))}" if branch else "applied"
        lines.append([("✓ ", "green"), (f"{target} by {_who_and_when(job.applied, now_ms)}", "")])
    return lines


def changes_line(changes: Mapping[str, object]) -> StyledLine:
    """`1 file +6 -2 on mam/9f0c3f5e`, as far as the record has it."""
    line: StyledLine = []
    files = changes.get("files")
    if type(files) is int:
        line.append((f"{files:,} file{'s' * (files != 1)}" if files else "nothing changed", ""))
    for name, sign, style in (("added", "+", "green"), ("removed", "-", "red")):
        if type(number := changes.get(name)) is int and number:
            line += [(" ", ""), (f"{sign}{number:,}", style)]
    if isinstance(branch := changes.get("branch"), str):
        line.append((f"{' on ' if line else 'on '}branch {safe(branch)}", "" if line else "dim"))
    return line


def _checks(job: Job, room: int) -> list[StyledLine]:
    checks = job.checks or {}
    lines: list[StyledLine] = []
    for artifact in checks.get("artifacts") or ():
        lines.append(
            [("✓ ", "green"), (safe(str(artifact.get("path"))), ""), (f"  {_size(artifact.get('size'))}", "dim")]
        )
    script = checks.get("script")
    if isinstance(script, dict):
        mark = ("✓ ", "green") if script.get("exit_code") == 0 else ("✗ ", "red")
        path = safe(str((job.validation or {}).get("script") or "the validation script")).rpartition("/")[2]
        lines.append([mark, (f"{path} ended with {script.get('exit_code')}", "")])
        output = str(script.get("output") or "").rstrip().split("\n")[-SCRIPT_LINES:]
        lines += [[(f"  {cut(safe(text), room - 2)}", "dim")] for text in output if text and mark[1] == "red"]
    denials = (job.run or {}).get("denials")
    if type(denials) is int:
        lines.append([("⊘ ", "yellow"), (f"{denials} permission{'s were' if denials != 1 else ' was'} denied", "")])
    if checks.get("problem"):
        lines += wrap([("✗ ", "red"), (safe(str(checks["problem"])), "")], room)
    if not lines and not job.status.ended and job.expected_artifacts:
        lines.append([(f"expects {safe(', '.join(job.expected_artifacts))}", "dim")])
    return lines


def _size(number: object) -> str:
    if type(number) is not int:
        return ""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def _cost(job: Job) -> list[StyledLine]:
    cost, took = cost_of(job) or {}, seconds_of(job)
    words = cost_words({**cost.get("tokens", {}), "usd": cost.get("usd")})
    if cost.get("from"):
        words[-1] += f" from your {cost['from']}"
    parts = [f"{name} {number:,}" for name, number in cost.get("tokens", {}).items() if type(number) is int]
    words += [duration(took)] if took is not None else []
    if not words:
        return []
    return [[(" · ".join(words), ""), (f"  ({', '.join(parts)})" if parts else "", "dim")]]


def _where(job: Job, room: int) -> list[StyledLine]:
    facts = where(job)
    host = f"{safe(str(facts['host']))}: " if facts["host"] else ""
    lines: list[StyledLine] = []
    if facts["directory"]:
        path = safe(str(facts["directory"]))
        if cell_length(host + path) > room:
            path = "…" + path[-max(1, room - cell_length(host) - 1) :]
        lines.append([(host, ""), (path, "")])
    words = [f"attempt {job.attempt}"] if job.attempt else []
    words += [f"held by {safe(job.owner)}"] if job.status is RUNNING and job.owner else []
    words += [f"{safe(job.agent)} {safe(str(facts['version']))}"] if facts["version"] else []
    words += [f"conversation {safe(str(facts['session']))[:40]}"] if facts["session"] else []
    return lines + ([[(cut(" · ".join(words), room), "dim")]] if words else [])


def _chain(overview: Overview) -> list[StyledLine]:
    lines: list[StyledLine] = []
    for relative in overview.chain[:RELATIVES]:
        status = ("gone", "dim") if relative.status is None else (str(relative.status), COLOURS[relative.status])
        words = _RELATIONS.get(relative.relation, relative.relation)
        lines.append([(f"{words} ", "dim"), (relative.job_id[:8], ""), ("  ", ""), status])
    more = max(0, len(overview.chain) - RELATIVES) + overview.children - _shown_children(overview)
    return lines + ([[(f"… and {more:,} more", "dim")]] if more > 0 else [])


def _shown_children(overview: Overview) -> int:
    return sum(relative.relation == "child" for relative in overview.chain)


def _seen(job: Job, now_ms: int) -> list[StyledLine]:
    return [[(f"by {_who_and_when(job.seen, now_ms)}", "")]] if job.seen else []


def _who_and_when(note: Json, now_ms: int) -> str:
    """Of a note in the record: `anna@laptop, 3m ago`."""
    try:
        age = f", {format_age(now_ms - parse_time(str(note.get('at'))))} ago"
    except ValueError:
        age = ""
    return f"{safe(str(note.get('by')))}{age}"


def _next(overview: Overview) -> list[StyledLine]:
    steps = next_steps(overview)
    longest = max((len(step.command) for step in steps), default=0)
    return [[(step.command.ljust(longest + 2), "cyan"), (step.effect, "dim")] for step in steps]

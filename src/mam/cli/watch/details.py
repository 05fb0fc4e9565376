"""One job in `mam watch`: explanation, events and the end of its output."""

from __future__ import annotations

import os
import re

from rich.text import Text

from mam.cli.render.conversation import ConversationPage, ConversationView
from mam.cli.render.conversation_stream import conversation_reader, workdir_of
from mam.cli.render.table import status_text
from mam.cli.render.text import one_line
from mam.cli.watch.drawing import shorten_ids
from mam.conversation.reader import read_all
from mam.jobs.changed_files import changes_of
from mam.jobs.status import RUNNING
from mam.util.clock import parse_time
from mam.util.escapes import EscapeFilter
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from mam.conversation.reader import ConversationReader
    from mam.jobs.record import Job
    from mam.registry import Registry

PROMPT_LINES, EVENTS, OUTPUT_BYTES, OUTPUT_LEAST = 6, 8, 16 << 10, 5
CONVERSATION_BYTES, OUTPUT_LINES = 256 << 10, 500
"""How much of the end is read for one drawing."""
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def details(registry: Registry, job_id: str, console: Console, height: int) -> list[Text]:
    """All lines; the output gets the height that the rest leaves."""
    job, sentences = registry.explain(job_id)
    lines = [_heading(registry, job), Text()]
    lines += _wrapped(console, _prompt(job))
    lines += [Text(), *_wrapped(console, [" · ".join(_facts(job))], "dim")]
    lines += _titled("WHY", _wrapped(console, map(shorten_ids, sentences)))
    lines += _titled("EVENTS", _wrapped(console, _events(registry, job)))
    output = _output(registry, job, console.width - 2)
    if output:
        room = max(OUTPUT_LEAST, height - len(lines) - 2)
        lines += _titled(f"OUTPUT of attempt {job.attempt}, its end", output[-room:])
    return lines


def _heading(registry: Registry, job: Job) -> Text:
    now = registry.store.clock.now()
    label = "" if job.agent_session == job.agent else f" for {one_line(job.agent_session)}"
    tries = f", attempt {job.attempt}" if job.attempt else ""
    registered = format_age(now.wall_ms - parse_time(job.created_at))
    status = status_text(job, now, registry.store.pauses())
    rest = f"  {one_line(job.agent)}{label}{tries}, registered {registered} ago"
    return Text.assemble((job.job_id, "bold"), "  ", status, (rest, "dim"))


def _prompt(job: Job) -> list[str]:
    said = [line for line in job.prompt.split("\n") if line.strip()]
    more = [f"… {len(said) - PROMPT_LINES} more lines; `mam get {job.job_id[:8]} --field prompt` prints them"]
    return [one_line(line.expandtabs(4)) for line in said[:PROMPT_LINES]] + (more if said[PROMPT_LINES:] else [])


def _facts(job: Job) -> list[str]:
    run, checks = job.run or {}, job.checks or {}
    short = job.job_id[:8]
    facts = [
        ("yours:", f"mam complete {short}, or mam fail {short} --reason TEXT" if _is_yours(job) else None),
        ("in", run.get("place") or job.workdir),
        ("on", run.get("host") or job.origin_host),
        ("took", f"{run['wall_seconds']} s" if isinstance(run.get("wall_seconds"), int | float) else None),
        ("expected:", ", ".join(job.expected_artifacts)),
        ("checked:", checks.get("problem") or ("passed" if checks else None)),
        ("lost", f"{job.losses} of {job.max_losses} times" if job.losses else None),
        ("retried", f"{job.retries} of {job.max_retries} times" if job.retries else None),
        ("changed", changes.summary() if (changes := changes_of(job)) is not None else None),
        ("continues", job.continues[:8] if job.continues else None),
        ("the retry of", job.retry_of[:8] if job.retry_of else None),
        ("child of", job.parent_id[:8] if job.parent_id else None),
        ("result:", job.result.strip()[-400:] if job.result and job.said else None),
    ]
    return [f"{name} {one_line(str(value))}" for name, value in facts if value]


def _is_yours(job: Job) -> bool:
    return job.agent == "human" and job.status is RUNNING


def _events(registry: Registry, job: Job) -> list[str]:
    events = [line for line in registry.store.events(job.job_id) if "event" in line][-EVENTS:]
    return [
        f"{one_line(str(line['timestamp']))[11:19]}  {line['event']:<19} {one_line(str(line['detail']))}".rstrip()
        for line in events
    ]


def _output(registry: Registry, job: Job, width: int) -> list[Text]:
    """The end of what the agent did, or of what the program printed."""
    from mam.work.output_log import length, read, tail_start
    from mam.work.output_source import local_log

    log = local_log(registry, job.job_id, job.attempt)
    if not job.attempt or not os.path.exists(log):
        return []
    reader = conversation_reader(job.agent)
    most = OUTPUT_BYTES if reader is None else CONVERSATION_BYTES
    begin = length(log) - most
    if begin > 0:
        begin = max(begin, tail_start(log, OUTPUT_LINES))
    tail = b"".join(read(log, max(0, begin)))[-most:]
    if begin > 0:
        tail = tail.partition(b"\n")[2]  # the first line may be incomplete
    return _plain(tail, width) if reader is None else _conversation(job, reader, tail, width)


def _conversation(job: Job, reader: ConversationReader, tail: bytes, width: int) -> list[Text]:
    view = ConversationView(ConversationPage(width, workdir=workdir_of(job)))
    items = reader.feed(tail) if job.status is RUNNING else read_all(reader, [tail])
    lines = [*view.settle(items), *view.running()]
    return [Text.assemble(*line) for line in lines]


def _plain(tail: bytes, width: int) -> list[Text]:
    """Without escape sequences. An overwritten line shows its last state."""
    text = _COLOUR.sub("", EscapeFilter().filter(tail).decode())
    lines = [line.rstrip("\r").rpartition("\r")[2].expandtabs(8) for line in text.rstrip().split("\n")]
    return [Text(f"  {one_line(line)[: max(1, width - 2)]}") for line in lines] if text.strip() else []


def _titled(title: str, lines: Iterable[Text]) -> list[Text]:
    found = list(lines)
    return [Text(), Text(title, style="bold"), *found] if found else []


def _wrapped(console: Console, lines: Iterable[str], style: str = "") -> list[Text]:
    """Indented and wrapped to the width of the screen."""
    width = max(10, console.width - 3)
    parts = [part for line in lines for part in Text(line, style=style).wrap(console, width, overflow="fold")]
    return [Text.assemble("  ", part) for part in parts]

"""See it all in half a minute: real workers, one of them killed, and what became of each job.

It takes place in a temporary directory with a store of its own; nothing of yours is read or changed. It exits 0 only
if every promise it makes was kept.
"""

from __future__ import annotations

import signal

from mam.cli.render.streams import person_reads, put_json, say
from mam.machine.signals import not_ignored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

    from mam.cli.args.parser import Options, Parser
    from mam.demo.chronicle import Life
    from mam.demo.promises import Promise
    from mam.demo.stage import Stage
    from mam.demo.story import Story

BROKEN = 1


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--keep", action="store_true", help="keep the directory, to look around in it")


def run(options: Options) -> int:
    from mam.cli.render.demo import teller
    from mam.demo.promises import looked_at
    from mam.demo.stage import Stage
    from mam.demo.story import Story

    for number in not_ignored(signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    with Stage(keep=options.keep) as stage:
        story = Story(stage)
        try:
            with teller(story.chronicle, as_json=options.json, lively=person_reads()) as told:
                story.play(told.tell)
                promises = looked_at(stage, story)
        finally:
            story.chronicle.close()
        if options.json:
            put_json(_document(stage, story, promises, keep=options.keep))
        told.conclude(promises, stage if options.keep else None)
    broken = [promise for promise in promises if not promise.kept]
    for promise in broken:
        say(f"not kept: {promise.words} But {promise.problem}.")
    return BROKEN if broken else 0


def _document(stage: Stage, story: Story, promises: Sequence[Promise], *, keep: bool) -> dict[str, Any]:
    return {
        "seconds": round(story.chronicle.moment, 3),
        "directory": stage.folder if keep else None,
        "promises": [{"promise": one.words, "kept": one.kept, "problem": one.problem} for one in promises],
        "jobs": [_job(life, stage) for life in story.chronicle.lives.values()],
    }


def _job(life: Life, stage: Stage) -> dict[str, Any]:
    record = stage.registry.get(life.job_id).to_json()
    timeline = [
        {"state": span.state, "from": round(span.since, 3), "to": None if span.until is None else round(span.until, 3),
         "attempt": span.attempt or None, "owner": span.owner, "because": span.because or None}
        for span in life.spans
    ]  # fmt: skip
    progress = [round(sign, 3) for sign in life.signs]
    return {"name": life.name, "timeline": timeline, "progress": progress, "record": record}


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)

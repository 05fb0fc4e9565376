"""Change a job that no worker has claimed; print its id.

Without options, mam opens the prompt in your editor (VISUAL, EDITOR, otherwise vi). If a worker claims the job or the
job changes meanwhile, mam rejects the edit and keeps your text. The audit log stores the values before and after.

  mam edit JOB
  mam edit JOB --priority 5 --at +2h
  mam edit JOB --prompt-file task.md --label tmux:codex
"""

from __future__ import annotations

import os
import sys

from mam.cli.args.options import add_job, named_job, number, registry_of
from mam.cli.args.text_files import read_text
from mam.cli.render.streams import print_job, say
from mam.errors import BadInput, MamError
from mam.jobs.edit import Edit
from mam.machine.person import user_at_host
from mam.util.human_time import parse_when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--prompt-file", metavar="FILE", help="the new task, from a file, or from stdin for -")
    parser.add_argument("--priority", type=number, metavar="N", help="workers claim a higher priority first")
    parser.add_argument("--at", metavar="T", help="the earliest start: +2h, 90s, 2026-11-15T10:00:00Z")
    parser.add_argument("--label", "--agent-session", "-s", metavar="LABEL", help="the label, which selects the worker")


def run(options: Options) -> int:
    name = named_job(options)
    registry = registry_of(options)
    given = (options.prompt_file, options.priority, options.at, options.label)
    if all(one is None for one in given):
        job = _edit_in_editor(registry, name)
    else:
        now = registry.store.clock.now().wall_ms
        changes = Edit(
            prompt=None if options.prompt_file is None else read_text("prompt", options.prompt_file),
            label=options.label,
            priority=options.priority,
            due_ms=None if options.at is None else parse_when(options.at, now),
        )
        job = registry.edit(name, changes, by=user_at_host())
    print_job(job, as_json=options.json, line=job.job_id)
    return 0


def _edit_in_editor(registry: Registry, name: str) -> Job:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(why="give what to change: --prompt-file, --priority, --at or --label")
    from mam.cli.editor import open_editor

    seen = registry.edit(name, Edit(), by=user_at_host())  # which rejects a job that cannot be edited
    copy = _copied(seen)
    try:
        open_editor(copy)
        with open(copy, encoding="utf-8", newline="") as file:
            text = file.read()
    except BaseException:
        os.unlink(copy)
        raise
    # An editor ends the last line; that alone is no change.
    prompt = seen.prompt if text == f"{seen.prompt}\n" else text
    try:
        job = registry.edit(seen.job_id, Edit(prompt=prompt), by=user_at_host(), seen=seen)
    except MamError:
        say(f"your text is in {copy}")
        raise
    os.unlink(copy)
    say("unchanged" if prompt == seen.prompt else "changed")
    return job


def _copied(job: Job) -> str:
    """A file with the prompt that no other user can read."""
    from tempfile import mkstemp

    descriptor, copy = mkstemp(prefix=f"mam-{job.job_id[:8]}-", suffix=".md")
    with open(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(job.prompt)
    return copy

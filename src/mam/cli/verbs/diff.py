"""Show what a job changed, as git does.

A diff of a worktree is that of its commits, also when the worktree is gone. In a directory that others use too, the
diff may include their changes. For a job that runs, it shows the changes so far. --chain begins with the first job of
a conversation. Words behind -- are paths.

--comment opens your editor on the diff. mam returns your comments to the agent as one continuation of the job, and
prints its id.

  mam diff JOB --stat
  mam diff JOB -- src/calendar
  mam diff JOB | git apply
"""

from __future__ import annotations

import os
import sys

from mam.cli.args.options import add_job, named_job, registry_of
from mam.cli.render.streams import print_job, print_json, say, stdout_is_terminal
from mam.errors import BadInput, Refused
from mam.work.git.command import GitFailed
from mam.work.git.diffs import DiffMissing, job_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.git.diffs import JobDiff

CHAIN_LIMIT = 1000


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--stat", action="store_true", help="only the files and how many lines of each")
    parser.add_argument("--chain", action="store_true", help="from the beginning of the conversation that it continues")
    parser.add_argument("--comment", action="store_true", help="comment on the diff; the comments continue the job")
    parser.takes_command = True


def run(options: Options) -> int:
    if options.comment and (options.stat or options.json):
        raise BadInput(why="--comment goes with neither --stat nor --json")
    registry = registry_of(options)
    job = registry.get(named_job(options))
    chain = _chain(registry, job) if options.chain else [job]
    try:
        diff = job_diff(chain, *_directories(registry, job))
        if options.comment:
            return _comment(registry, job, diff, options)
        if options.json:
            return _as_json(job, diff, options)
        return _show(diff, options)
    except DiffMissing as missing:
        return _show_stored(registry, job, options, str(missing))
    except GitFailed as failed:
        raise Refused(why=f"The changes of job {job.job_id} cannot be shown: {failed}.") from None


def _directories(registry: Registry, job: Job) -> tuple[str, str]:
    """The work directory of this store, and the prefix of private files in it."""
    from mam.work.state_dirs import private_prefix, work_directory

    directory = work_directory(registry.store.address)
    return directory, f"{private_prefix(directory, job.job_id, job.attempt)}.diff-{os.getpid()}"


def _chain(registry: Registry, job: Job) -> list[Job]:
    """The jobs of the conversation up to this one."""
    chain = [job]
    while chain[0].continues is not None and len(chain) < CHAIN_LIMIT:
        chain.insert(0, registry.get_exact(chain[0].continues))
    return chain


def _show(diff: JobDiff, options: Options) -> int:
    if diff.shared:
        say("other programs may have worked in the same directory; the diff may include their changes")
    is_person = stdout_is_terminal()
    parts = diff.stream(options.command or (), stat=options.stat, colour=is_person and diff.is_coloured())
    if is_person:
        from mam.cli.render.pager import show_in_pager

        show_in_pager(parts, diff.git)
    else:
        for part in parts:
            sys.stdout.buffer.write(part)
    return 0


def _show_stored(registry: Registry, job: Job, options: Options, why: str) -> int:
    """The diff that the worker of another host copied into the store."""
    from mam.stores.outputs import DIFF

    stored = None if options.chain else registry.store.outputs.get(job.job_id, job.attempt, DIFF)
    if stored is None or options.comment or options.command or options.stat:
        raise Refused(why=f"Job {job.job_id} has no diff here: {why}.")
    if options.json:
        print_json({"job_id": job.job_id, "diff": stored.decode(errors="replace")})
        return 0
    from mam.util.escapes import EscapeFilter

    sys.stdout.buffer.write(EscapeFilter().filter(stored) if stdout_is_terminal() else stored)
    return 0


def _as_json(job: Job, diff: JobDiff, options: Options) -> int:
    text = b"".join(diff.stream(options.command or (), stat=options.stat)).decode(errors="replace")
    facts = {"before": diff.before, "after": diff.after, "shared": diff.shared}
    print_json({"job_id": job.job_id, **facts, "diff": text})
    return 0


# -- comments --------------------------------------------------------------------------------------------------------


def _comment(registry: Registry, job: Job, diff: JobDiff, options: Options) -> int:
    from mam.jobs.diff_comments import comments_prompt

    prompt = comments_prompt(_edited(diff.stream(options.command or ())))
    if prompt is None:
        say("no comments, so nothing was registered")
        return 0
    new = registry.continue_job(job.job_id, prompt=prompt).job
    print_job(new, as_json=False, line=new.job_id)
    return 0


def _edited(parts: Iterator[bytes]) -> str:
    from tempfile import mkstemp

    from mam.cli.editor import open_editor
    from mam.jobs.diff_comments import with_heading

    text = b"".join(parts).decode(errors="replace")
    if not text:
        raise Refused(why="The job changed nothing, so there is nothing to comment on.")
    descriptor, path = mkstemp(prefix="mam-comments-", suffix=".diff")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(with_heading(text))
        open_editor(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    finally:
        os.unlink(path)

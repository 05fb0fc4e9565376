"""Claim jobs and run them, one after another.

SIGTERM stops the running agents and releases their jobs. Ctrl-C lets running jobs finish and claims no more; a second
Ctrl-C releases them. A worker killed with -9 loses nothing: its agents end, and its jobs return to pending when their
leases expire.

With --in, the worker types the jobs of label tmux:NAME into the live session NAME (`mam agents start`), one at a time,
each as one line. The session outlives the worker: the next worker supervises its current job and types nothing again.
With --label, it also gets jobs of labels that several sessions share: while one works or waits for a person, the others
take them.

  mam worker -s shell --concurrency 4
  mam worker -s gpu -s nightly --drain
  mam worker --in claude --between /clear
  mam worker --in claude-2 -s claude-code
"""

from __future__ import annotations

import os
import signal
import sys

from mam.cli.args.options import number, registry_of
from mam.cli.render.streams import say
from mam.errors import BadInput, JobsLeft, NothingToPick
from mam.jobs.input_rules import check_name
from mam.jobs.status import Status
from mam.machine.person import process_name
from mam.machine.processes import not_ignored
from mam.util.human_time import parse_duration, parse_lease_seconds
from mam.work.worker import DRAIN, DRAIN_NOW, WorkerOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Protocol

    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.registry import Registry
    from mam.work.live.session import LiveSession

    class Stoppable(Protocol):
        def stop(self) -> None: ...

        def hand_back(self) -> None: ...


MAX_CONCURRENCY = 1000
STOPPED = 0


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--label", "--agent-session", "-s", action="append", default=[], metavar="LABEL",
                        help="the label to serve; repeatable, labels take turns")  # fmt: skip
    parser.add_argument(
        "--agent", metavar="DEFAULT", help="the label if none is given, and the agent of old jobs without one"
    )
    parser.add_argument("--in", metavar="NAME", help="the live session that gets the jobs of tmux:NAME")
    parser.add_argument("--between", metavar="TEXT", help="with --in: text to type between two jobs, such as /clear")
    parser.add_argument("--concurrency", type=number, metavar="N", default=1, help="jobs at a time (default 1)")
    parser.add_argument("--once", action="store_true", help="run one job, then exit; exit 3 if there is none")
    parser.add_argument("--drain", nargs="?", const=DRAIN, type=_drain, metavar="now",
                        help="exit when no job of the labels is left; with --drain=now, when none can be claimed "
                        "(exit 3 if jobs are left)")  # fmt: skip
    parser.add_argument("--job", metavar="JOB", help="run only this job until it has ended")
    parser.add_argument("--lease", type=parse_lease_seconds, metavar="S",
                        help="length of a lease, which the worker renews (default 60; on PostgreSQL 180)")  # fmt: skip
    parser.add_argument("--grace", type=parse_duration, metavar="S", default=5.0,
                        help="time between SIGTERM and SIGKILL for an agent (default 5)")  # fmt: skip
    parser.add_argument("--owner", metavar="O", help="the owner of the claims; default: user@host:process")


def run(options: Options) -> int:
    from mam.config.settings import load_config
    from mam.location.stores import locate
    from mam.work.factory import open_worker

    config = load_config()
    located = locate(options.store, options.registry_dir, config)
    if not 1 <= options.concurrency <= MAX_CONCURRENCY:
        raise BadInput(why=f"--concurrency takes a number between 1 and {MAX_CONCURRENCY}")
    session = _session(options)
    job_id, labels = (None, session.labels) if session is not None else _job_and_labels(options, config)
    alone = options.once or job_id is not None
    worker_options = WorkerOptions(
        labels=labels,
        owner=options.owner if options.owner is not None else process_name(os.getpid()),
        concurrency=options.concurrency,
        job_id=job_id,
        most=1 if options.once else None,
        drain=DRAIN_NOW if options.once else options.drain,
    )
    settings = {"lease_seconds": options.lease, "grace_seconds": options.grace, "default_agent": options.agent,
                "session": session}  # fmt: skip
    worker, context = open_worker(located, config, worker_options, say=say, show=print_brief, **settings)
    handle_signals(worker)
    if not alone:
        say(f"working for {', '.join(labels)} in {located.shown}, {options.concurrency} at a time")
    try:
        worker.run()
    finally:
        context.close()
    if session is not None and session.lost is not None and worker_options.drain:
        raise session.lost
    if options.once and not worker.taken:
        from mam.cli.render.claim_hint import claim_hint

        raise NothingToPick(label=", ".join(labels), why=claim_hint(registry_of(options), *labels))
    if options.drain == DRAIN_NOW and not options.once:
        _report_jobs_left(registry_of(options), labels)
    return STOPPED


def _drain(word: str) -> str:
    if word != DRAIN_NOW:
        raise BadInput(why=f"--drain takes no value, or =now; not {word[:40]!r}")
    return word


def _report_jobs_left(registry: Registry, labels: tuple[str, ...]) -> None:
    from collections import Counter

    left = Counter(job.status for job in registry.open_jobs(labels))
    if left:
        statuses = ", ".join(f"{left[status]:,} {status}" for status in Status if left[status])
        raise JobsLeft(labels=", ".join(labels), statuses=statuses)


def _session(options: Options) -> LiveSession | None:
    name: str | None = getattr(options, "in")
    if name is None:
        if options.between is not None:
            raise BadInput(why="--between needs --in: `mam worker --in NAME --between /clear`")
        return None
    if options.job is not None or options.concurrency != 1:
        raise BadInput(why="--in gives the session one job at a time; omit --job and --concurrency")
    from mam.agents.open_directory import open_directory
    from mam.agents.send import strip_controls
    from mam.work.live.session import LiveSession

    if options.between is not None:
        strip_controls(options.between)
    shared = tuple(dict.fromkeys(check_name("label", label) for label in options.label))
    session = LiveSession(open_directory(options.store, options.registry_dir), name, options.between, shared)
    session.target()
    session.open()
    return session


def _job_and_labels(options: Options, config: Config) -> tuple[str | None, tuple[str, ...]]:
    if options.job is not None:
        job = registry_of(options).get(options.job)
        return job.job_id, (job.agent_session,)
    agent = options.agent if options.agent is not None else config.default_agent
    labels = options.label or ([agent] if agent is not None else [])
    if not labels:
        raise BadInput(why="give a label: `mam worker -s LABEL`; `mam list` prints the labels")
    return None, tuple(dict.fromkeys(check_name("label", label) for label in labels))


def print_brief(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


def handle_signals(worker: Stoppable) -> None:
    asked: list[int] = []

    def finish(number_: int, _frame: FrameType | None) -> None:
        asked.append(number_)
        if len(asked) > 1:
            worker.hand_back()
        else:
            worker.stop()
            _write_stderr("finishing the running jobs; a second Ctrl-C releases them")

    signal.signal(signal.SIGINT, finish)
    for ending in not_ignored(signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda _number, _frame: worker.hand_back())


def _write_stderr(words: str) -> None:
    """Without the stream, because the signal may have interrupted a write of this thread."""
    try:
        os.write(2, f"mam: {words}\n".encode())
    except OSError:
        return

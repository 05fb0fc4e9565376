"""Options and main function of `mam inbox watch` and `mam inbox once`."""

from __future__ import annotations

import os

from mam.cli.args.options import number
from mam.cli.render.streams import print_json_line, print_row, say
from mam.config.inbox import MODES
from mam.errors import BadInput, InboxTaken, InboxUnfinished
from mam.machine.person import process_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.inbox.ledger import LedgerRow
    from mam.inbox.settings import Settings
    from mam.jobs.record import Job

MAX_CONCURRENCY = 1000
FAILED, CANCELLED, REFUSED_CODE = 7, 8, 1


def add_place(parser: Parser) -> None:
    parser.add_argument(
        "--root", metavar="DIR", help="the directory above inbox/; default: `root` of [inbox], else the current one"
    )
    parser.add_argument("--mode", metavar="MODE", help="the directories below inbox/: multi-owner (owner/repo/branch), "
                        "single-owner (repo/branch), flat (files for this repository)")  # fmt: skip


def add_work(parser: Parser) -> None:
    add_place(parser)
    parser.add_argument("--agent", metavar="A", help="the agent of files that name none; default: `agent` of "
                        "[inbox], else default_agent, else the only installed agent")  # fmt: skip
    parser.add_argument("--concurrency", type=number, metavar="N", default=1,
                        help="jobs at a time (default 1); 0 leaves the jobs to other workers")  # fmt: skip


def mode_of(options: Options) -> str | None:
    if options.mode is not None and options.mode not in MODES:
        raise BadInput(why=f"--mode takes {', '.join(MODES[:-1])} or {MODES[-1]}, not {options.mode[:40]!r}")
    mode: str | None = options.mode
    return mode


class FileReporter:
    """Prints what happens to each file, and collects the exit code."""

    def __init__(self, options: Options, settings: Settings, *, once: bool) -> None:
        self._json = options.json
        self._once = once
        self._root = settings.root
        self._ended: dict[str, str] = {}
        self.codes: set[int] = set()

    def report(self, what: str, claim: LedgerRow, job: Job | None, words: str) -> None:
        if job is not None and what == "ended":
            self._ended[claim.job_id] = job.status
            self.codes |= {"error": {FAILED}, "cancelled": {CANCELLED}}.get(str(job.status), set())
        if what in ("refused", "left"):
            self.codes.add(REFUSED_CODE)
        if self._json:
            self._put_json(what, claim, job, words)
        else:
            self._say(what, claim, job, words)

    def code(self) -> int:
        """7 takes precedence over 8, and 8 over 1."""
        return next((code for code in (FAILED, CANCELLED, REFUSED_CODE) if code in self.codes), 0)

    def _put_json(self, what: str, claim: LedgerRow, job: Job | None, words: str) -> None:
        line = {"event": what, "job_id": _job_id(claim), "file": claim.rel, "status": job and str(job.status)}
        if what == "finished":
            line["outcome"] = words or None
        elif claim.outcome:
            line["outcome"] = f"inbox/{claim.outcome}"
        if what in ("refused", "left"):
            line["why"] = words
        if what == "taken" and words:
            line["remark"] = words
        print_json_line(line)

    def _say(self, what: str, claim: LedgerRow, job: Job | None, words: str) -> None:
        short = claim.job_id[:8]
        if what == "taken" and job is not None:
            wait = f", waits for {job.waiting_for}" if job.waiting_for else ""
            say(f"{short} {claim.rel}: registered for {job.agent}{wait}")
            if words:
                say(f"{short} {claim.rel}: {words}")
        elif what == "ended" and job is not None:
            why = f": {job.reason}" if job.reason and job.status != "completed" else ""
            say(f"{short} {claim.rel}: {job.status}{why}")
            if not self._once:
                print_row(claim.job_id, job.status, f"inbox/{claim.outcome}")
        elif what in ("refused", "left"):
            say(f"{claim.rel}: {words}")
        elif what == "finished" and self._once:
            status = "refused" if claim.refused else self._ended.get(claim.job_id, "ended")
            print_row(_job_id(claim) or "-", status, words or "-")


def _job_id(claim: LedgerRow) -> str | None:
    """A refused file has no job."""
    return None if claim.refused else claim.job_id or None


def work(options: Options, *, once: bool) -> int:
    from mam.cli.verbs.worker import handle_signals, print_brief
    from mam.config.settings import load_config
    from mam.inbox.ledger import DATABASE, Ledger
    from mam.inbox.loop import Inbox
    from mam.inbox.service import InboxService
    from mam.inbox.settings import load_settings
    from mam.inbox.tree import QUEUE
    from mam.inbox.watcher import require_watchfiles
    from mam.location.stores import create_store, locate
    from mam.work.factory import open_worker
    from mam.work.worker import WorkerOptions

    if not 0 <= options.concurrency <= MAX_CONCURRENCY:
        raise BadInput(why=f"--concurrency takes a number between 0 and {MAX_CONCURRENCY}")
    require_watchfiles()
    config = load_config()
    settings = load_settings(config, root=options.root, mode=mode_of(options), agent=options.agent)
    located = locate(options.store, options.registry_dir, config)
    belongs = Ledger.bound_store(os.path.join(settings.root, QUEUE))
    if belongs is not None and located.exists is False:  # create no store for an inbox of another one
        page = os.path.join(settings.root, QUEUE, DATABASE)
        raise InboxTaken(root=settings.root, store=belongs, other=located.shown, page=page)
    if create_store(located, config):
        say(f"created a store at {located.shown}")
    reporter = FileReporter(options, settings, once=once)
    worker_options = WorkerOptions(
        labels=(settings.label,), owner=process_name(os.getpid()), concurrency=max(1, options.concurrency)
    )
    # The inbox prints what happens to a job, so the worker prints only problems.
    worker, context = open_worker(located, config, worker_options, say=_say_problems_only, show=print_brief)
    try:
        inbox = Inbox(
            settings.replace(linger_seconds=0.0) if once else settings,
            context.registry,
            reporter.report,
            context.say_once,
        )
        watching = InboxService(
            inbox, context.registry.store, worker if options.concurrency else None, context.say_once, once=once
        )
        handle_signals(worker if options.concurrency else watching)
        if not once:
            where = f"{inbox.tree.inbox} ({settings.mode})"
            say(f"watching {where}, jobs in {located.shown}, {options.concurrency} at a time")
        watching.run()
    finally:
        context.close()
    if watching.failure is not None:
        raise watching.failure
    if once and inbox.problems:
        raise (
            BadInput(why=f"mam could not take every file: {inbox.problems[0]}") if not inbox.open else InboxUnfinished()
        )
    return reporter.code() if once else 0


def _say_problems_only(words: str) -> None:
    if " attempt " not in words.partition(":")[0]:
        say(words)

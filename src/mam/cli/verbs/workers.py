"""List the live workers, or ask one to exit.

Each line has the worker, its state, its labels, the agents that it can run, the jobs that it holds and since when, when
it was last seen, and its version. The list ends with the owners of claims that no live worker has, such as `pick`
loops; their state is `-`.

A worker obeys within 20 seconds: `drain` lets it finish its running jobs and exit, `stop` releases them first.

  mam workers
  mam workers drain anna@forge:4711
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_json_array, print_row, say, stdout_is_terminal
from mam.errors import BadInput
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.workers import DRAIN, STATES, STOP, holder_json, labels_held
from mam.util.clock import parse_time
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.workers import Holder
    from mam.registry import Registry

HEADINGS = ("WORKER", "STATE", "LABELS", "AGENTS", "HOLDS", "SEEN", "VERSION")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="drain|stop WORKER", help="ask this worker to exit")


def run(options: Options) -> int:
    registry = registry_of(options)
    if options.words:
        return _ask(registry, options)
    found = registry.holders()
    now_ms = registry.store.clock.now().wall_ms
    if options.json:
        print_json_array(holder_json(holder) for holder in found)
    elif not stdout_is_terminal():
        for holder in found:
            print_row(*_row(holder, now_ms))
    elif found:
        from mam.cli.render.table import print_table

        print_table(HEADINGS, [_row(holder, now_ms) for holder in found])
    else:
        say("no worker runs; `mam worker -s LABEL` starts one")
    return 0


def _ask(registry: Registry, options: Options) -> int:
    what, *names = options.words
    if what not in (DRAIN, STOP) or len(names) != 1:
        raise BadInput(why="give the name of one worker: `mam workers drain WORKER` or `mam workers stop WORKER`")
    worker = registry.ask_worker(names[0], what)
    if options.json:
        print_json({"worker": worker.name, "asked": what})
    else:
        print_row(worker.name)
    return 0


def _row(holder: Holder, now_ms: int) -> tuple[str, ...]:
    worker = holder.worker
    held = " ".join(
        f"{job.job_id[:ID_PREFIX_SHOWN]} ({format_age(now_ms - parse_time(job.claimed_at or job.updated_at))})"
        for job in holder.jobs
    )
    if worker is None:
        return holder.owner or "-", "-", ",".join(labels_held(holder)), "-", held, "-", "-"
    places = f"{len(holder.jobs)}/{worker.concurrency}"
    seen = format_age(now_ms - parse_time(worker.seen_at))
    return (
        worker.name, STATES[worker.asked], ",".join(worker.labels), ",".join(worker.agents), f"{places} {held}".strip(),
        seen, worker.version,
    )  # fmt: skip

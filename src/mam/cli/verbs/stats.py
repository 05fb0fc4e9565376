"""Show throughput, times, success and cost of the jobs.

The figures are grouped by label, agent and day (UTC) and cover the jobs that ended since --since. WAIT is the time from
pending to the claim; RUN is the time under a claim, over all attempts. Both are medians, followed by the 95th
percentile; above 256 seconds, mam rounds them down by less than one percent. Success is the share of completed jobs
among those that were not cancelled.

The first call reads the whole journal (ten thousand jobs take about two seconds of CPU time) and stores the figures in
the user's cache. Later calls read only new entries.

In a pipe: one line for all jobs and one for each group: kind, name, ended, completed, error, cancelled, losses,
retries, median and p95 of waiting, of running, tokens, cost; separated by tabs.
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, stdout_is_terminal
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.stats.figures import Figures

KINDS = ("label", "agent", "day")
PERIOD = "30d"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--since", metavar="T", default=PERIOD, help=f"only jobs that ended since then (default: {PERIOD})"
    )
    parser.add_argument(
        "--by",
        action="append",
        metavar="WHAT",
        help=f"the groups: {', '.join(KINDS)}; repeatable, or separated by commas",
    )


def run(options: Options) -> int:
    kinds = _kinds(options.by)
    registry = registry_of(options)
    from mam.cli.render.progress import counting
    from mam.stats.report import make_report

    with counting("entries of the journal read") as advance:  # the first call may take long
        report = make_report(registry.store, options.since, kinds, advance)
    if options.json:
        print_json(report.to_json(registry.store.address))
    elif stdout_is_terminal():
        from mam.cli.render.stats import show

        show(report.total, report.groups, report.registered, report.open, report.hours)
    else:
        _put("all", report.total)
        for kind, found in report.groups.items():
            for one in found:
                _put(kind, one)
    return 0


def _kinds(words: list[str] | None) -> tuple[str, ...]:
    if words is None:
        return KINDS
    kinds = tuple(word.strip() for text in words for word in text.split(","))
    for word in kinds:
        if word not in KINDS:
            raise BadInput(why=f"--by takes {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {word[:40]!a}")
    return kinds


def _put(kind: str, one: Figures) -> None:
    numbers = (
        one.ended, one.completed, one.error, one.cancelled, one.losses, one.retries, one.wait_median, one.wait_p95,
        one.run_median, one.run_p95, one.tokens, one.cost,
    )  # fmt: skip
    print_row(kind, one.name, *("" if number is None else f"{number:g}" for number in numbers))

"""Show mam at work in half a minute: workers, retries, a kill.

The demo runs real workers in a temporary directory with a store of its own. It reads and changes nothing of yours. The
exit code is 0 only if every promise that it lists was kept.
"""

from __future__ import annotations

import signal

from mam.cli.render.streams import print_json, say, stdout_is_terminal
from mam.machine.processes import not_ignored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

    from mam.cli.args.parser import Options, Parser
    from mam.demo.promises import Promise
    from mam.demo.sandbox import Sandbox
    from mam.demo.scenario import Scenario
    from mam.demo.timelines import Timeline

BROKEN = 1


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--keep", action="store_true", help="keep the directory, so that you can inspect it")


def run(options: Options) -> int:
    from mam.cli.render.demo import make_output
    from mam.demo.promises import check_promises
    from mam.demo.sandbox import Sandbox
    from mam.demo.scenario import Scenario

    for number in not_ignored(signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    with Sandbox(keep=options.keep) as sandbox:
        scenario = Scenario(sandbox)
        try:
            with make_output(scenario.timelines, as_json=options.json, live=stdout_is_terminal()) as output:
                scenario.run(output.show_step)
                promises = check_promises(sandbox, scenario)
        finally:
            scenario.timelines.close()
        if options.json:
            print_json(_document(sandbox, scenario, promises, keep=options.keep))
        output.show_summary(promises, sandbox if options.keep else None)
    broken = [promise for promise in promises if not promise.kept]
    for promise in broken:
        say(f"broken promise: {promise.text} Problem: {promise.problem}.")
    return BROKEN if broken else 0


def _document(sandbox: Sandbox, scenario: Scenario, promises: Sequence[Promise], *, keep: bool) -> dict[str, Any]:
    return {
        "seconds": round(scenario.timelines.moment, 3),
        "directory": sandbox.directory if keep else None,
        "promises": [{"promise": one.text, "kept": one.kept, "problem": one.problem} for one in promises],
        "jobs": [_job(timeline, sandbox) for timeline in scenario.timelines.by_job.values()],
    }


def _job(timeline: Timeline, sandbox: Sandbox) -> dict[str, Any]:
    record = sandbox.registry.get(timeline.job_id).to_json()
    spans = [
        {"state": span.state, "from": round(span.since, 3), "to": None if span.until is None else round(span.until, 3),
         "attempt": span.attempt or None, "owner": span.owner, "because": span.because or None}
        for span in timeline.spans
    ]  # fmt: skip
    progress = [round(at, 3) for at in timeline.progress_at]
    return {"name": timeline.name, "timeline": spans, "progress": progress, "record": record}


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)

"""Stop claims for an agent, for a label, or for all jobs.

Running jobs continue. Without --until, the pause lasts until `mam resume` with the same options. --list prints the
pauses.

  mam pause --agent codex --until +5h --reason "limit"
  mam pause --label tmux:codex
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_json_array, print_row, say
from mam.cli.render.text import one_line
from mam.errors import BadInput
from mam.jobs.input_rules import ID_PREFIX_SHOWN, check_name
from mam.jobs.pause import draft_pause
from mam.util.human_time import parse_when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.pause import Pause
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_target(parser)
    parser.add_argument("--until", metavar="T", help="when the pause ends: +2h, 90s, 2026-11-15T10:00:00Z")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, which `mam explain` prints")
    parser.add_argument("--list", action="store_true", help="print the pauses and change nothing")


def add_target(parser: Parser) -> None:
    parser.add_argument("--agent", metavar="A", help="only jobs for this agent")
    parser.add_argument("--label", "--agent-session", "-s", metavar="LABEL", help="only jobs with this label")


def target(options: Options) -> tuple[str | None, str | None]:
    agent = None if options.agent is None else check_name("agent", options.agent)
    return agent, None if options.label is None else check_name("label", options.label)


def run(options: Options) -> int:
    registry = registry_of(options)
    if options.list:
        return _list(registry, options)
    agent, label = target(options)
    now = registry.store.clock.now()
    until = None if options.until is None else parse_when(options.until, now.wall_ms, "--until")
    reason = None if options.reason is None else check_name("reason", options.reason)
    pause = draft_pause(agent, label, until, reason, now)
    registry.pause(pause)
    if options.json:
        print_json(pause.as_dict())
    else:
        say(f"{describe_pause(pause)}; `{resume_command(pause)}` ends the pause")
    return 0


def _list(registry: Registry, options: Options) -> int:
    if any(given is not None for given in (options.agent, options.label, options.until, options.reason)):
        raise BadInput(why="--list prints every pause and takes no other option")
    now = registry.store.clock.now()
    held = [pause for pause in registry.store.pauses() if pause.is_active(now)]
    if options.json:
        print_json_array(pause.as_dict() for pause in held)
        return 0
    for pause in held:
        print_row(describe_pause(pause))
    if not held:
        say("nothing is paused")
    return 0


def describe_pause(pause: Pause) -> str:
    until = "" if pause.until is None else f" until {pause.until}"
    why = "" if pause.reason is None else f" ({one_line(pause.reason)})"
    first = "" if pause.probe is None else f" at the latest, job {pause.probe[:ID_PREFIX_SHOWN]} is tried first"
    return f"paused: {one_line(pause.scope)}{until}{first}{why}"


def resume_command(pause: Pause) -> str:
    from shlex import quote

    words = ["mam resume"]
    words += [] if pause.agent is None else [f"--agent {quote(pause.agent)}"]
    words += [] if pause.label is None else [f"--label {quote(pause.label)}"]
    return " ".join(words)

"""Know the live sessions of agents, and reach exactly the one that is meant.

the directory
  publish   write down a session, and hold its name for as long as its lease lasts
  refresh   begin the lease anew
  resolve   print the id of the one live session of a name
  list      all records, one line each: id, name, state, tmux session, agent, until when or why not
  show      one record, whole
  remove    take one's own record away
  cleanup   take away what is missing, malformed or expired

sessions in tmux
  start     start a session, and a companion that keeps its lease
  stop      end it
  attach    go there
  restart   a new session of the same name, with a new generation
  adopt     take over a tmux session that was started by hand
  status    record, tmux, process and jobs side by side
  send      type a text into it, once and whole, and submit it

the programs
  check     whether the coding agents are installed, and have the options that mam uses

An agent is named by its name (gpu, MAM-gpu and HOUMAO-gpu are one) or by its id. `mam agents VERB --help` says more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SUBVERBS = (
    "publish", "refresh", "resolve", "list", "show", "remove", "cleanup",
    "start", "stop", "attach", "restart", "adopt", "status", "send", "check",
)  # fmt: skip


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {name: f"mam.cli.verbs.agents_verbs.{name}" for name in SUBVERBS}


def run(options: Options) -> int:
    code: int = options.module.run(options)
    return code

"""List, start, stop and reach live sessions of agents.

The directory of sessions:
  publish   add a session to the directory; its name is reserved while its lease is valid
  refresh   renew the lease
  resolve   print the id of the one live session of a name
  list      print every record: id, name, state, tmux session, agent, end of the lease
  show      print one record
  remove    remove your own record
  cleanup   remove records that are missing, malformed or expired

Sessions in tmux:
  start     start a session, and a companion process that renews its lease
  stop      end a session
  attach    attach your terminal to a session
  restart   start a new session of the same name, with a new generation
  adopt     add a tmux session that you started yourself
  status    compare record, tmux, process and jobs
  send      type a text into a session and submit it

Programs:
  check     check whether the coding agents are installed and have the options that mam uses

AGENT is a name (gpu, MAM-gpu and HOUMAO-gpu are the same) or an id. `mam agents VERB --help` has more.
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

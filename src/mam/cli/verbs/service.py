"""Print a systemd user unit for the inbox, a worker or the server.

WHAT is inbox, worker or serve; the words behind -- are its options. The unit uses the current store, directory and
PATH. A store that needs a password reads it from PGPASSFILE or ~/.pgpass, because other users can read a unit.

  mam service inbox -- --root ~/prompts \\
      > ~/.config/systemd/user/mam-inbox.service
  mam service worker -- -s shell --concurrency 4
  mam service serve -- --port 8626
"""

from __future__ import annotations

import os
import sys

from mam.cli.render.streams import print_json, print_text
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

KINDS = {"inbox": ("inbox", "watch"), "worker": ("worker",), "serve": ("serve",)}
DESCRIPTIONS = {
    "inbox": "mam: runs prompt files of the inbox", "worker": "mam: claims jobs and runs them",
    "serve": "mam: serves the store to browsers and programs",
}  # fmt: skip


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="WHAT", help="inbox, worker or serve")
    parser.takes_command = True


def run(options: Options) -> int:
    if options.word not in KINDS:
        raise BadInput(why="give a service: `mam service inbox`, `worker` or `serve`; its options follow --")
    from mam.config.settings import load_config
    from mam.inbox.systemd_unit import unit_text
    from mam.location.stores import locate
    from mam.machine.environment import absolute_path

    located = locate(options.store, options.registry_dir, load_config())
    argv = [*_mam(), *KINDS[options.word], "--store", located.shown, *_checked(options)]
    text = unit_text(options.word, DESCRIPTIONS[options.word], argv, os.getcwd(), absolute_path(os.environ))
    if options.json:
        print_json({"name": f"mam-{options.word}.service", "unit": text})
    else:
        print_text(text)
    return 0


def _checked(options: Options) -> list[str]:
    """Parse the options now, so that a mistake shows here and not at the next boot."""
    words: list[str] = [_expanded(word) for word in options.command or []]
    from mam.cli.args.options import parse_options
    from mam.cli.verbs import inbox, serve, worker

    module = {"inbox": inbox, "worker": worker, "serve": serve}[options.word]
    parse_options(options.word, module, [*KINDS[options.word][1:], *words])
    return words


def _expanded(word: str) -> str:
    """systemd does not expand a tilde."""
    name, equals, value = word.partition("=")
    if equals and name.startswith("--") and value.startswith("~"):
        return f"{name}={os.path.expanduser(value)}"
    return os.path.expanduser(word)


def _mam() -> list[str]:
    return [sys.executable, "-P", "-m", "mam"]

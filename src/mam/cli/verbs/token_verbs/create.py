"""Create a token and print it; it is shown only now.

Bounds limit the jobs that it registers (--agent, --repo, --max-permissions) and the labels of the jobs that it
registers and claims. Without --agent it can register jobs for every agent but shell.

  mam token create ci --scope submit --repo acme/shop
  mam token create gpu-box --scope work --expires 90d
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.credentials import NewSecret
    from mam.access.grant import Grant
    from mam.cli.args.parser import Options, Parser
    from mam.stores.port import Store


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="NAME", help="the name, by which you list and revoke it")
    add_grant_options(parser)


def add_grant_options(parser: Parser) -> None:
    parser.add_argument("--scope", action="append", default=[], metavar="WORD",
                        help="read, submit, work, answer or admin; repeatable, or separated by commas")  # fmt: skip
    parser.add_argument("--label", action="append", default=[], metavar="L", help="only this label; repeatable")
    parser.add_argument("--agent", action="append", default=[], metavar="A", help="only this agent; repeatable")
    parser.add_argument("--repo", action="append", default=[], metavar="R", help="only this repository; repeatable")
    parser.add_argument(
        "--max-permissions", metavar="P", help="the most that its jobs may do: ask, edit (default), full"
    )
    parser.add_argument("--expires", metavar="D", help="when it ends: 90d, 12h, 2027-01-01T00:00:00Z; default: never")


def grant_of(options: Options) -> Grant:
    from mam.access.grant import check_grant

    return check_grant(
        options.scope, labels=options.label, agents=options.agent, repos=options.repo,
        max_permissions=options.max_permissions,
    )  # fmt: skip


def new_token(options: Options, store: Store) -> NewSecret:
    from mam.access.credentials import create_token

    return create_token(store, options.word, grant_of(options), expires_ms(options, store))


def expires_ms(options: Options, store: Store) -> int | None:
    if options.expires is None:
        return None
    from mam.util.human_time import parse_when

    now = store.clock.now().wall_ms
    found = parse_when(options.expires, now, "--expires")
    if found <= now:
        raise BadInput(why=f"--expires {options.expires[:40]!r} has passed already")
    return found


def run(options: Options) -> int:
    if options.word is None:
        raise BadInput(why="give a name: mam token create NAME --scope read")
    grant = grant_of(options)
    made = new_token(options, registry_of(options, create=True).store)
    if options.json:
        print_json({"name": options.word, "token": made.secret, "grant": grant.to_json()})
    else:
        print_row(made.secret)
        say(f"the token {options.word} is shown only now; send it as `Authorization: Bearer TOKEN`")
    return 0

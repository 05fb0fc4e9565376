"""List the browsers that are notified of questions and failures, and what became of each message.

  (no word)    print the browsers: name, token, push service, since when
  log          print what became of the messages of the latest jobs, newest first
  test NAME    send a message that names no job
  remove NAME  notify this browser no more

A browser is added on the page of `mam serve`, under Notifications. A message names the job and whether it asks or has
failed. It is forgotten with the log-in or the token of its browser, and when its push service no longer knows it.

  mam push
  mam push test 3f9ab2c410de
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_json_array, print_row, say, stdout_is_terminal
from mam.errors import BadInput, Refused
from mam.machine.agent_tree import check_outside_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.access.subscriptions import Subscription
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Json
    from mam.registry import Registry

HEADINGS = ("NAME", "TOKEN", "PUSH SERVICE", "SINCE")
LOG_HEADINGS = ("WHEN", "JOB", "ABOUT", "BROWSER", "OUTCOME")


def add_arguments(parser: Parser) -> None:
    parser.usage = "mam push [log | test NAME | remove NAME]"
    parser.add_argument("words", nargs="*", metavar="log|test|remove", help="what to do; without it, list the browsers")


def run(options: Options) -> int:
    check_outside_agents("push")
    registry, words = registry_of(options), options.words
    if not words:
        _list(registry, options)
    elif words == ["log"]:
        _log(registry, options)
    elif words[0] in ("test", "remove") and len(words) == 2:
        return _test(registry, words[1], options) if words[0] == "test" else _remove(registry, words[1], options)
    else:
        raise BadInput(why="use `mam push`, `mam push log`, `mam push test NAME` or `mam push remove NAME`")
    return 0


def _list(registry: Registry, options: Options) -> None:
    from mam.access.subscriptions import subscriptions

    found = [_facts(one) for one in subscriptions(registry.store)]
    _print(found, ("name", "token", "service", "since"), HEADINGS, options)
    if not found and not options.json:
        say("no browser is notified; open the page of `mam serve` and choose Notifications")


def _log(registry: Registry, options: Options) -> None:
    from mam.push.outcomes import outcomes

    found = [one.to_json() for one in outcomes(registry, lambda _job: True)]
    for one in found:
        one["job"], one["outcome_why"] = one["job_id"][:8], " ".join(filter(None, (one["outcome"], one["why"])))
    shown = [{name: value for name, value in one.items() if name not in ("job", "outcome_why")} for one in found]
    _print(shown if options.json else found, ("at", "job", "notice", "to", "outcome_why"), LOG_HEADINGS, options)
    if not found and not options.json:
        say("no message was sent for the latest jobs")


def _test(registry: Registry, name: str, options: Options) -> int:
    from mam.config.settings import load_config
    from mam.jobs.notices import ACCEPTED
    from mam.push.sending import Sender, check_packages
    from mam.serve.settings import ServeSettings

    check_packages()
    private = bool(load_config().push.get("private", False))
    sender = Sender(registry, contact=ServeSettings().contact, allow_private=private)
    done = sender.send_test(_found(registry, name))
    if done.outcome != ACCEPTED:
        raise Refused(why=f"The test was {done.outcome}: {done.why}.")
    _say_done(name, done.outcome, options)
    return 0


def _remove(registry: Registry, name: str, options: Options) -> int:
    from mam.access.subscriptions import unsubscribe

    unsubscribe(registry.store, _found(registry, name).name)
    _say_done(name, "removed", options)
    return 0


def _found(registry: Registry, name: str) -> Subscription:
    from mam.access.subscriptions import own_subscription
    from mam.access.viewer import local_viewer
    from mam.machine.person import user_at_host

    return own_subscription(registry.store, local_viewer(user_at_host()), name)


def _say_done(name: str, what: str, options: Options) -> None:
    if options.json:
        print_json({"name": name, "outcome": what})
    else:
        print_row(name, what)


def _facts(one: Subscription) -> Json:
    from mam.util.clock import iso_second

    return {"name": one.name, "token": one.token, "service": one.service, "since": iso_second(one.made_ms)}


def _print(rows: Sequence[Json], names: Sequence[str], headings: Sequence[str], options: Options) -> None:
    if options.json:
        print_json_array(iter(rows))
        return
    columns = [tuple(str(row[name]) for name in names) for row in rows]
    if columns and stdout_is_terminal():
        from mam.cli.render.table import print_table

        print_table(tuple(headings), columns)
    else:
        for one in columns:
            print_row(*one)

"""The old script publish_event.py: `mam publish`, with a message when no broker gets the event."""

from __future__ import annotations

from mam.cli.render.streams import say
from mam.cli.verbs import publish as verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    verb.add_arguments(parser)
    parser.usage = "mam publish_event [JOB] EVENT [--detail TEXT] [--data JSON] [--attempt N]"


def run(options: Options) -> int:
    if not verb.publish(options):
        say("the event is stored but was not sent: the job's record names no broker, and none is configured")
    return 0

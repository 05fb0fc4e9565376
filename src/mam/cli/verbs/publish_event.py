"""The old script publish_event.py: `mam publish`, with a message when no broker gets the event."""

from __future__ import annotations

from mam.cli.render.streams import say
from mam.cli.verbs.publish import add_arguments, publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options

__all__ = ["add_arguments", "run"]


def run(options: Options) -> int:
    if not publish(options):
        say("the event is stored but was not sent: the job's record names no broker, and none is configured")
    return 0

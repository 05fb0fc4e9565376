"""Print the output of an attempt: what is there, or everything until it ends, with what its agent asks meanwhile."""

from __future__ import annotations

import os
import sys

from mam.cli.render.streams import stdout_is_terminal
from mam.jobs.status import RUNNING
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mam.conversation.reader import ConversationReader
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.output_source import OutputSource


class View(Frozen):
    """How to print an output: on a terminal as a conversation, or without escape sequences other than colours; in a
    pipe byte for byte."""

    raw: bool = False
    """Byte for byte, also on a terminal."""
    full: bool = False
    """Unfold what is folded."""
    as_json: bool = False
    """One item of the conversation a line."""
    with_end: bool = True
    """Also the end of the turn and its cost."""


class AttemptOutput(Frozen):
    """An attempt, and where its output is."""

    registry: Registry
    job: Job
    attempt: int
    source: OutputSource
    since: int = 0

    def print(self, view: View) -> None:
        """What is there now."""
        chunks, reader = self.source.read(self.since), _reader(self.job, view)
        if reader is None:
            _print_plain(self.job, chunks, view)
        else:
            from mam.cli.render.conversation_stream import print_conversation, printer_for

            with printer_for(self.job, full=view.full, with_end=view.with_end, live=False) as printer:
                print_conversation(printer, reader, chunks)

    def follow(self, view: View) -> None:
        """What is there, and then all that comes until the attempt has ended."""
        from mam.cli.live_question import LiveQuestion, QuestionNotes

        reader = _reader(self.job, view)
        if reader is None:
            _print_plain(self.job, self._growing(QuestionNotes().look), view)
            return
        from mam.cli.render.conversation_stream import print_conversation, printer_for

        is_live = os.environ.get("TERM") != "dumb"
        with printer_for(self.job, full=view.full, with_end=view.with_end, live=is_live) as printer:
            if is_live:
                with LiveQuestion(self.registry, printer) as question:
                    print_conversation(printer, reader, self._growing(question.look))
            else:
                print_conversation(printer, reader, self._growing(QuestionNotes().look))

    def _growing(self, look: Callable[[Job | None], None]) -> Iterator[bytes]:
        def ended() -> bool:
            now = self.registry.store.get(self.job.job_id)
            has_ended = now.status is not RUNNING or now.attempt != self.attempt
            look(None if has_ended else now)
            return has_ended

        return self.source.follow(ended, self.since)


def _reader(job: Job, view: View) -> ConversationReader | None:
    """None if the output is no conversation, or is not printed as one."""
    if view.raw or view.as_json or not stdout_is_terminal():
        return None
    from mam.cli.render.conversation_stream import conversation_reader

    return conversation_reader(job.agent)


def _print_plain(job: Job, chunks: Iterable[bytes], view: View) -> None:
    if view.as_json:
        from mam.cli.render.conversation_stream import print_items

        print_items(job.agent, chunks)
        return
    if not view.raw and stdout_is_terminal():
        from mam.util.escapes import EscapeFilter

        escapes = EscapeFilter()
        chunks = (escapes.filter(chunk) for chunk in chunks)
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()

"""Print a conversation as it comes: to a terminal, or as lines of JSON.

A tool that runs is shown below what has happened, and its outcome takes the place of that line.
"""

from __future__ import annotations

import os
import sys

from mam.agent_table import agent_kind, load
from mam.cli.render.ansi import has_colours, to_ansi
from mam.cli.render.conversation import ConversationPage, ConversationView
from mam.cli.render.prose import fit
from mam.cli.render.streams import print_json_line
from mam.conversation.items import WARNING, Notice, to_json
from mam.conversation.reader import PlainReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from mam.cli.render.prose import StyledLine
    from mam.conversation.items import Item
    from mam.conversation.reader import ConversationReader
    from mam.jobs.question import Question
    from mam.jobs.record import Job

DEFAULT_WIDTH = 80


def conversation_reader(agent: str) -> ConversationReader | None:
    """None if the output of this agent has no structure."""
    reader = agent_kind(agent).conversation
    if not reader:
        return None
    made: ConversationReader = load(reader)()
    return made


def print_items(agent: str, chunks: Iterable[bytes]) -> None:
    """One line of JSON for each item, as soon as it is known."""
    reader = conversation_reader(agent) or PlainReader()
    for chunk in chunks:
        for item in reader.feed(chunk):
            print_json_line(to_json(item))
        sys.stdout.flush()
    for item in reader.end():
        print_json_line(to_json(item))
    sys.stdout.flush()


def printer_for(job: Job, *, full: bool, with_end: bool, live: bool) -> ConversationPrinter:
    """On a terminal. `live`: the output grows, so tools that run are shown."""
    page = ConversationPage(terminal_width(), workdir=workdir_of(job), full=full, with_end=with_end)
    return ConversationPrinter(page, live=live)


def print_conversation(printer: ConversationPrinter, reader: ConversationReader, chunks: Iterable[bytes]) -> None:
    for chunk in chunks:
        printer.show(reader.feed(chunk))
    printer.show(reader.end())


class ConversationPrinter:
    """A context: at its end, tools that did not end remain on the screen as they are."""

    def __init__(self, page: ConversationPage, *, live: bool) -> None:
        self._page = page
        self._view = ConversationView(page)
        self._live = live
        self._colours = has_colours()
        self._standing: list[StyledLine] = []
        self._drawn = 0
        """Lines on the screen that the next items replace."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._write(self._view.running(), [])

    def show(self, items: Iterable[Item]) -> None:
        self._draw(self._view.settle(items))

    def ask(self, question: Question) -> None:
        """Show a question of the job whole, as far as the conversation has not shown it."""
        self._draw(self._page.question(question))

    def note(self, text: str) -> None:
        self._draw(self._page.lines(Notice(text=text, level=WARNING)))

    def stand(self, lines: list[StyledLine]) -> None:
        """Keep these lines below all others."""
        if lines != self._standing:
            self._standing = [fit(line, self._page.width) for line in lines]
            self._draw([])

    def _draw(self, lines: list[StyledLine]) -> None:
        self._write(lines, [*self._view.running(), *self._standing] if self._live else [])

    def _write(self, lines: list[StyledLine], below: list[StyledLine]) -> None:
        erase = f"\x1b[{self._drawn}A\r\x1b[J" if self._drawn else ""
        text = "".join(f"{to_ansi(line, self._colours)}\n" for line in [*lines, *below])
        self._drawn = len(below)
        sys.stdout.write(erase + text)
        sys.stdout.flush()


def terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_WIDTH
    except OSError:
        return DEFAULT_WIDTH


def workdir_of(job: Job) -> str | None:
    """Where the agent ran."""
    place = (job.run or {}).get("place") or job.workdir
    return place if isinstance(place, str) else None

"""The base of the conversation readers. A subclass reads the output of one agent, line by line, as it comes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mam.conversation.items import INFO, Asked, Line, Notice
from mam.conversation.lines import LineSplitter
from mam.util.strict_json import safe_json
from mam.work.reports.questions import ANSWERED, ASKED
from mam.work.reports.report import get_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mam.conversation.items import Item
    from mam.conversation.lines import RawLine
    from mam.jobs.record import Json


class ConversationReader(ABC):
    def __init__(self) -> None:
        self._lines = LineSplitter()
        self.asked_calls: set[str] = set()
        """The agent's names of the tool uses about which it asked."""

    def feed(self, data: bytes) -> Iterator[Item]:
        """The items of the lines that are complete now. A part of a line waits for its rest."""
        for line in self._lines.feed(data):
            yield from self._read(line)

    def end(self) -> Iterator[Item]:
        """Call it when there is no more output; the last line may lack its end."""
        rest = self._lines.rest()
        if rest is not None:
            yield from self._read(rest)

    @abstractmethod
    def read_message(self, message: Json) -> Iterable[Item] | None:
        """The items of one line of JSON, maybe none; None if this kind of line is not known."""

    def _read(self, line: RawLine) -> Sequence[Item]:
        items = self._items(line.data)
        if items is None:
            return [Line(text=line.data.decode("utf-8", "replace"), left_out=line.left_out or None)]
        if line.left_out:
            items.append(Notice(text=f"mam left out {line.left_out:,} bytes of this line", level=INFO))
        return items

    def _items(self, data: bytes) -> list[Item] | None:
        if data[:1] != b"{" and data.lstrip()[:1] != b"{":
            return None
        try:
            message = safe_json(data)
            if not isinstance(message, dict):
                return None
            if message.get("type") in (ASKED, ANSWERED):
                return list(self._question(message))
            found = self.read_message(message)
            return None if found is None else list(found)
        except Exception:  # an agent may print anything; the line is then shown as it is
            return None

    def _question(self, message: Json) -> Iterator[Item]:
        """A line of a driver about a question of the job."""
        call = str(message.get("call"))
        if message["type"] == ASKED:
            if call not in self.asked_calls:
                self.asked_calls.add(call)
                yield Asked(question=str(message.get("text")), choices=tuple(map(str, get_list(message, "choices"))))
            return
        said = message.get("text")
        outcome = str(message.get("outcome"))
        answer = [] if outcome == "answer" else [outcome]
        yield Notice(text=": ".join(["answered", *answer, *([said] if isinstance(said, str) else [])]), level=INFO)


class PlainReader(ConversationReader):
    """For programs whose output has no structure."""

    def read_message(self, message: Json) -> None:  # noqa: ARG002 - it knows no kind of line
        return None


def read_all(reader: ConversationReader, chunks: Iterable[bytes]) -> Iterator[Item]:
    """Every item of an output."""
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.end()

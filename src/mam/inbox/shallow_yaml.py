"""A YAML subset for front matter: `key: value` lines, where a value is one string or a list of strings.

The input is untrusted, so this module limits it before it becomes a structure. It reads the parser's events one by one
and stops at the first event that is not allowed: a deeper level, an anchor or an alias. Nothing recurses. It uses the
Python parser: bad input raises an exception, which becomes BadInput, and cannot crash the process.
"""

from __future__ import annotations

from mam.errors import BadInput
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from yaml.events import Event

SIZE_LIMIT = 64 << 10
DEEPEST = 20
"""Levels of a value that is not mam's."""
FIRST_LINE = 2
"""The line number of the front matter's first line: the fence is line 1."""


class Entry(Frozen):
    """One `key: value`."""

    key: str
    value: str | list[str]
    line: int
    """The line where the value begins."""


class TopLevel(Frozen):
    keys: dict[str, int]
    """The keys with their lines, up to the first mistake."""
    texts: dict[str, str] = {}  # noqa: RUF012 - nothing writes into it later
    """The values that are one text."""
    mistake: str | None = None
    is_empty: bool = False


def top_level_keys(text: str) -> TopLevel:
    """The keys of the first level, whatever their values are. Stops at a mistake or at a value that is too deep."""
    keys: dict[str, int] = {}
    texts: dict[str, str] = {}
    try:
        events = _events(text, any_anchor=True)
        first = next(events, None)
        if first is None:
            return TopLevel(keys=keys, is_empty=True)
        for event in events if _kind(first) == "MappingStart" else ():
            if _kind(event) != "Scalar":
                break
            name = str(getattr(event, "value", ""))
            keys[name], value = _line(event), next(events)
            if _kind(value) == "Scalar":
                texts[name] = str(getattr(value, "value", ""))
            _skip(value, events)
    except (BadInput, StopIteration) as mistake:
        return TopLevel(keys=keys, texts=texts, mistake=str(mistake))
    return TopLevel(keys=keys, texts=texts, mistake=None if keys else "it is not a table of keys")


def _skip(event: Event, events: Iterator[Event]) -> None:
    """Read past one value."""
    depth = 0
    while True:
        depth += _kind(event).endswith("Start") - _kind(event).endswith("End")
        if depth > DEEPEST:
            raise BadInput(why="it is too deep")
        if not depth:
            return
        event = next(events)


def entries(text: str, check_key: Callable[[str, int], None], block: str | None = None) -> Iterator[Entry]:
    """BadInput names the line and the reason. `check_key` sees each key and its line before its value is read. With a
    `block`, the entries are those of the table of this key, and other keys are not read."""
    if len(text) > SIZE_LIMIT:
        raise BadInput(why=f"the front matter has more than {SIZE_LIMIT:,} characters")
    if block is not None:
        yield from _block_entries(text, check_key, block)
        return
    events = _events(text)
    if not _opens(next(events, None)):
        return
    yield from _table(events, check_key)
    for _ in events:
        raise BadInput(why="the front matter has a second YAML document; join them into one list of keys")


def _block_entries(text: str, check_key: Callable[[str, int], None], block: str) -> Iterator[Entry]:
    events = _events(text, any_anchor=True)
    next(events)
    for event in events:
        if _kind(event) == "MappingEnd":
            return
        if getattr(event, "value", None) != block:
            _skip(next(events), events)
            continue
        if _kind(next(events)) != "MappingStart":
            raise BadInput(why=f"line {_line(event)}: {block} must be a table of keys, indented below it")
        yield from _table(events, check_key)
        return


def _table(events: Iterator[Event], check_key: Callable[[str, int], None]) -> Iterator[Entry]:
    for event in events:
        if _kind(event) == "MappingEnd":
            break
        key = _text(event, "a key")
        check_key(key, _line(event))
        value = next(events)
        read = _list(events) if _kind(value) == "SequenceStart" else _text(value, f"{key}: it")
        yield Entry(key=key, value=read, line=_line(value))


def _events(text: str, *, any_anchor: bool = False) -> Iterator[Event]:
    """The events that carry content."""
    import yaml

    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if _kind(event) not in ("StreamStart", "StreamEnd", "DocumentStart", "DocumentEnd"):
                yield event if any_anchor else _plain(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + FIRST_LINE}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it holds a character that YAML does not allow"
        raise BadInput(why=f"the front matter is not YAML{where}: {problem[:200]}") from None
    except BadInput:
        raise
    except Exception as error:  # the parser has others, for a version of 5,000 digits or a character \UFFFFFFFF
        raise BadInput(why=f"the front matter is not YAML: {type(error).__name__}") from None


def _plain(event: Event) -> Event:
    if getattr(event, "anchor", None) is not None:
        raise BadInput(why=f"line {_line(event)}: the front matter takes no anchor and no alias (& and *)")
    return event


def _opens(event: Event | None) -> bool:
    """False if the front matter is empty."""
    if event is None:
        return False
    if _kind(event) != "MappingStart":
        raise BadInput(why="the front matter is not a list of `key: value` lines")
    return True


def _list(events: Iterator[Event]) -> list[str]:
    found = []
    for event in events:
        if _kind(event) == "SequenceEnd":
            break
        found.append(_text(event, "an item"))
    return found


def _text(event: Event, what: str) -> str:
    kinds = {"SequenceStart": "list", "MappingStart": "table"}
    if _kind(event) in kinds:
        raise BadInput(why=f"line {_line(event)}: {what} must be one value, not a {kinds[_kind(event)]}")
    text = str(getattr(event, "value", ""))
    if not text.strip():
        raise BadInput(why=f"line {_line(event)}: {what} has no value")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput(why=f"line {_line(event)}: {what} contains half a surrogate pair, which is not a character")
    return text


def _kind(event: Event) -> str:
    return type(event).__name__.removesuffix("Event")


def _line(event: Event) -> int:
    return (event.start_mark.line if event.start_mark is not None else 0) + FIRST_LINE

"""The timeline of each job, drawn as text: who had it, for how long, and how it ended."""

from __future__ import annotations

from mam.cli.table import LOOKS
from mam.cli.text import one_line
from mam.frozen import Frozen
from mam.jobs.status import COMPLETED, PENDING, RUNNING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mam.demo.chronicle import Life, Span

NAME_MOST, BAR_LEAST, BAR_MOST, END_ROOM = 12, 16, 100, 34
FILL, SIGN, PENDS, WAITS, LOST, AGAIN = "━", "┿", "·", "┄", "†", "↻"
COLOURS = ("cyan", "yellow", "magenta", "blue", "green")
STYLES = {PENDING: "dim", WAITING: "blue"}


class Cell(Frozen):
    text: str
    style: str = ""


def chart(lives: Sequence[Life], now: float, width: int, owners: Sequence[str]) -> list[list[Cell]]:
    """One line for each job, and one for the time; a line is a run of cells with their styles."""
    names = max((len(life.name) for life in lives), default=0)
    names = min(names, NAME_MOST)
    room = min(BAR_MOST, max(BAR_LEAST, width - names - 4 - END_ROOM))
    colours = {owner: COLOURS[at % len(COLOURS)] for at, owner in enumerate(owners)}
    span = max(now, 1.0)
    lines = [
        [Cell(text=f"{life.name:<{names}}  "), *_bar(life, now, span, room, colours), _end(life)] for life in lives
    ]
    return [*lines, [Cell(text=" " * (names + 2) + _axis(span, room), style="dim")]]


def legend(owners: Sequence[str]) -> list[Cell]:
    cells = [Cell(text=f"{FILL * 2} {owner}  ", style=COLOURS[at % len(COLOURS)]) for at, owner in enumerate(owners)]
    marks = (
        (PENDS, "pending"),
        (WAITS, "waiting"),
        (SIGN, "progress"),
        (LOST, "worker lost"),
        (AGAIN, "to be retried"),
    )
    return [*cells, Cell(text="  ".join(f"{mark} {word}" for mark, word in marks), style="dim")]


def plain(lines: Iterable[Sequence[Cell]]) -> list[str]:
    return ["".join(cell.text for cell in line).rstrip() for line in lines]


def _bar(life: Life, now: float, whole: float, room: int, colours: dict[str, str]) -> list[Cell]:
    """Character by character, so that however short a stretch is it is seen."""
    drawn = [Cell(text=" ")] * room
    for at, span in enumerate(life.spans):
        begin = _place(span.since, whole, room)
        if span.state.ended:
            drawn[begin] = Cell(text=LOOKS[span.state][0], style=LOOKS[span.state][1])
            break
        following = life.spans[at + 1].state if at + 1 < len(life.spans) else None
        end = max(begin + 1, _place(span.until if span.until is not None else now, whole, room))
        for place, cell in zip(range(begin, end), _stretch(span, end - begin, colours, following is None), strict=True):
            drawn[place] = cell
    for sign in life.signs:
        place = _place(sign, whole, room)
        if drawn[place].text == FILL:
            drawn[place] = drawn[place].replace(text=SIGN)
    return drawn


def _place(moment: float, whole: float, room: int) -> int:
    return min(room - 1, max(0, int(moment / whole * room)))


def _stretch(span: Span, length: int, colours: dict[str, str], goes_on: bool) -> list[Cell]:
    if span.state is not RUNNING:
        mark = WAITS if span.state is WAITING else PENDS
        return [Cell(text=mark, style=STYLES[span.state])] * length
    style = colours.get(span.owner or "", "")
    name = one_line(span.owner or "")
    text = name + FILL * (length - len(name)) if len(name) + 1 < length else FILL * length
    if not goes_on and span.because == "lost":
        text = text[:-1] + LOST
    elif not goes_on and span.because and length > 1:
        text = text[:-1] + AGAIN
    return [Cell(text=letter, style=style) for letter in text[:length]]


def _end(life: Life) -> Cell:
    state = life.state
    icon, style = LOOKS[state]
    because = life.spans[-1].because
    why = f": {one_line(because)}" if because and because != state and state is not COMPLETED else ""
    doing = f": {one_line(life.detail)}" if state is RUNNING and life.detail else ""
    text = f"  {icon} {state}{why}{doing}"
    return Cell(text=text if len(text) <= END_ROOM else f"{text[: END_ROOM - 1]}…", style=style)


def _axis(whole: float, room: int) -> str:
    """Whole seconds, as many as there is place for."""
    step = next((step for step in (1, 2, 5, 10, 20, 30, 60) if whole / step <= room / 6), 60)
    drawn = [" "] * (room + 6)
    for second in range(0, int(whole) + 1, step):
        for at, letter in enumerate(f"{second} s", start=int(second / whole * room)):
            if at < len(drawn):
                drawn[at] = letter
    return "".join(drawn).rstrip()

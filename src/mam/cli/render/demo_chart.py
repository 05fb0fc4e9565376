"""The timeline of each job as text: owner, duration and outcome."""

from __future__ import annotations

from mam.cli.render.status_styles import STATUS_STYLES
from mam.cli.render.text import one_line
from mam.jobs.status import COMPLETED, PENDING, RUNNING, WAITING
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mam.demo.timelines import Span, Timeline
    from mam.jobs.status import Status

NAME_MOST, BAR_LEAST, BAR_MOST, END_LEAST, END_PART = 12, 10, 100, 13, 0.38
FILL, SIGN, PENDS, WAITS, DIES, DEAD, LOST, AGAIN = "━", "┿", "·", "┄", "╳", "╌", "†", "↻"
COLOURS = ("cyan", "yellow", "magenta", "blue", "green")
STYLES = {PENDING: "dim", WAITING: "blue"}


class Cell(Frozen):
    text: str
    style: str = ""


class Workers(Frozen):
    """The workers in the order of their colours, and the times of kills."""

    owners: tuple[str, ...]
    killed_at: dict[str, float]

    def colour(self, owner: str | None) -> str:
        return COLOURS[self.owners.index(owner) % len(COLOURS)] if owner in self.owners else ""


def chart(by_job: Sequence[Timeline], now: float, width: int, workers: Workers) -> list[list[Cell]]:
    """One line for each job and one for the time; a line is a list of styled cells."""
    names = min(max((len(timeline.name) for timeline in by_job), default=0), NAME_MOST)
    end_room = max(END_LEAST, int(width * END_PART))
    room = min(BAR_MOST, max(BAR_LEAST, width - names - 4 - end_room))
    whole = max(now, 1.0)
    lines = [
        [
            Cell(text=f"{timeline.name[:names]:<{names}}  "),
            *_bar(timeline, now, whole, room, workers),
            _end(timeline, end_room),
        ]
        for timeline in by_job
    ]
    return [*lines, [Cell(text=" " * (names + 2) + _axis(whole, room), style="dim")]]


def legend(workers: Workers) -> list[list[Cell]]:
    who = [Cell(text=f"{FILL * 2} {owner}  ", style=workers.colour(owner)) for owner in workers.owners]
    first = ((PENDS, "pending"), (WAITS, "waiting"), (SIGN, "progress"), (AGAIN, "retry follows"))
    second = ((DIES, "worker killed"), (DEAD, "kill not detected yet"), (LOST, "lease expired, job pending again"))
    return [[*who, _words(first)], [_words(second)]]


def _words(marks: Sequence[tuple[str, str]]) -> Cell:
    return Cell(text="  ".join(f"{mark} {word}" for mark, word in marks), style="dim")


def plain(lines: Iterable[Sequence[Cell]]) -> list[str]:
    return ["".join(cell.text for cell in line).rstrip() for line in lines]


def _bar(timeline: Timeline, now: float, whole: float, room: int, workers: Workers) -> list[Cell]:
    """Character by character, so that every period is visible."""
    drawn = [Cell(text=" ")] * room
    for at, span in enumerate(timeline.spans):
        begin = _column(span.since, whole, room)
        if span.state.ended:
            drawn[begin] = Cell(text=STATUS_STYLES[span.state][0], style=STATUS_STYLES[span.state][1])
            break
        follows = timeline.spans[at + 1].state if at + 1 < len(timeline.spans) else None
        end = max(begin + 1, _column(now if span.until is None else span.until, whole, room))
        text = list(_stretch(span, end - begin, follows))
        death = workers.killed_at.get(span.owner or "")
        if span.state is RUNNING and death is not None and span.since < death <= (span.until or now):
            _mark_death(text, _column(death, whole, room) - begin)
        style = workers.colour(span.owner) if span.state is RUNNING else STYLES[span.state]
        drawn[begin:end] = [Cell(text=letter, style=style) for letter in text]
    for sign in timeline.progress_at:
        column = _column(sign, whole, room)
        if drawn[column].text == FILL:
            drawn[column] = drawn[column].replace(text=SIGN)
    return drawn


def _mark_death(text: list[str], column: int) -> None:
    """Marks the kill and the time until the lease expires, without hiding other marks."""
    worked = [at for at, letter in enumerate(text) if letter == FILL]
    exited_workers = [at for at in worked if at >= column] or worked[-1:]
    for at in exited_workers:
        text[at] = DIES if at == exited_workers[0] else DEAD


def _column(moment: float, whole: float, room: int) -> int:
    return min(room - 1, max(0, int(moment / whole * room)))


def _stretch(span: Span, length: int, follows: Status | None) -> str:
    if span.state is not RUNNING:
        return (WAITS if span.state is WAITING else PENDS) * length
    owner = one_line(span.owner or "")
    name = owner if len(owner) + 2 < length else owner[:1] if length > 1 else ""
    last = LOST if span.because == "lost" else AGAIN if follows is WAITING else ""
    return f"{name}{FILL * length}"[: length - len(last)] + last


def _end(timeline: Timeline, room: int) -> Cell:
    state = timeline.state
    icon, style = STATUS_STYLES[state]
    because = timeline.spans[-1].because if state is not COMPLETED else ""
    said = timeline.detail if state is RUNNING else because
    text = f"  {icon} {one_line(said) or state}"
    return Cell(text=text if len(text) <= room + 2 else f"{text[: room + 1]}…", style=style)


def _axis(whole: float, room: int) -> str:
    """Whole seconds, as many as fit."""
    step = next((step for step in (1, 2, 5, 10, 20, 30, 60) if whole / step <= room / 6), 60)
    drawn = [" "] * (room + 6)
    for second in range(0, int(whole) + 1, step):
        for at, letter in enumerate(f"{second} s", start=int(second / whole * room)):
            if at < len(drawn):
                drawn[at] = letter
    return "".join(drawn).rstrip()

"""The live table of all stores, one line each; Enter opens the jobs of a store."""

from __future__ import annotations

import os
import sys
import time

from rich.console import Console
from rich.text import Text

from mam.cli.render.text import one_line
from mam.cli.watch.journal_follower import FollowerFailed, JournalFollower, Loaded, NewEntries, Unavailable
from mam.cli.watch.keys import DOWN, ENTER, UP
from mam.cli.watch.model import Model
from mam.cli.watch.screen import DRAW_INTERVAL_SECONDS, TICK_SECONDS, Screen, render_line
from mam.cli.watch.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.cli.args.known_stores import StoreRef
    from mam.cli.watch.journal_follower import Notification
    from mam.registry import Registry
    from mam.stores.port import Query

COLUMNS = ("NEED YOU", "RUNNING", "WAITING", "PENDING", "ERROR")
HINTS = (("↑↓", "select"), ("⏎", "open"), ("q", "quit"))


class _StoreRow:
    """One store, which its own follower updates."""

    def __init__(self, ref: StoreRef, query: Callable[[Registry], Query], pipe: tuple[int, int]) -> None:
        self.ref = ref
        self.problem = ref.problem
        self.model: Model | None = None
        self.follower: JournalFollower | None = None
        if ref.registry is not None:
            registry = ref.registry
            self.query = query(registry)
            self.follower = JournalFollower(registry, lambda: _loaded(registry, self.query), pipe)

    def handle(self, notification: Notification) -> None:
        match notification:
            case Loaded():
                assert isinstance(notification.what, Model)
                self.model, self.problem = notification.what, None
            case NewEntries() if self.model is not None:
                for entry in notification.entries:
                    self.model.apply(entry)
            case Unavailable():
                self.problem = notification.why
            case FollowerFailed():
                raise notification.error

    def counts(self) -> tuple[int, ...] | None:
        if self.model is None or self.ref.registry is None:
            return None
        return self.model.counts(self.ref.registry.store.clock.now())


def _loaded(registry: Registry, query: Query) -> Model:
    model = Model(registry.store, query)
    model.load()
    return model


class StoresScreen:
    def __init__(self, refs: list[StoreRef], query: Callable[[Registry], Query]) -> None:
        self._pipe = os.pipe()
        self._lines = [_StoreRow(ref, query, self._pipe) for ref in refs]
        self._at = 0

    def run(self) -> int:
        while (selected := self._watch()) is not None:
            registry = selected.ref.registry
            assert registry is not None
            Screen(registry, selected.query, selected.ref.display_name, has_list_of_stores=True).run()
        return 0

    def _watch(self) -> _StoreRow | None:
        """Run until the user opens a store; None if the user quits."""
        with Terminal(*self._pipe) as terminal:
            drawn, dirty = 0.0, True
            while True:
                now = time.monotonic()
                if (dirty and now - drawn >= DRAW_INTERVAL_SECONDS) or now - drawn >= TICK_SECONDS:
                    self._draw(terminal)
                    dirty, drawn = False, time.monotonic()
                for key in terminal.wait(drawn + (DRAW_INTERVAL_SECONDS if dirty else TICK_SECONDS) - time.monotonic()):
                    dirty = True
                    if key == "q":
                        return None
                    if key in (ENTER, "o") and self._selected() is not None:
                        return self._selected()
                    self._move(key)
                for line in self._lines:
                    for notification in line.follower.drain() if line.follower is not None else ():
                        line.handle(notification)
                        dirty = True

    def _selected(self) -> _StoreRow | None:
        line = self._lines[self._at] if self._lines else None
        return line if line is not None and line.model is not None else None

    def _move(self, key: str) -> None:
        step = {UP: -1, "k": -1, DOWN: 1, "j": 1}.get(key, 0)
        self._at = min(max(0, self._at + step), max(0, len(self._lines) - 1))

    def _draw(self, terminal: Terminal) -> None:
        width, height = terminal.size
        console = Console(file=sys.stdout, width=width, height=height, highlight=False)
        room = max(1, height - 4)
        top = max(0, self._at - room + 1)
        wide = max(10, width - 2 - sum(len(name) + 2 for name in COLUMNS))
        lines = [self._header(), Text(), _row("STORE", COLUMNS, wide, "bold")]
        for number, line in list(enumerate(self._lines))[top : top + room]:
            lines.append(_store(line, wide, selected=number == self._at))
        lines = lines[: max(0, height - 1)]
        lines += [Text()] * (height - 1 - len(lines))
        hints = Text("   ").join(Text.assemble((key, "bold"), " ", (what, "dim")) for key, what in HINTS)
        terminal.show([render_line(console, line, width) for line in [*lines, hints][-height:]])

    def _header(self) -> Text:
        counts = [found for line in self._lines if (found := line.counts()) is not None]
        needs, running = sum(found[0] for found in counts), sum(found[1] for found in counts)
        return Text.assemble(
            ("mam everywhere", "bold"),
            f"  {len(self._lines)} stores · ",
            (f"{needs:,} need{'s' * (needs == 1)} you", "bold red" if needs else ""),
            f" · {running:,} running",
        )


def _store(line: _StoreRow, wide: int, *, selected: bool) -> Text:
    counts = line.counts()
    if line.problem is not None or counts is None:
        row = Text.assemble(
            _name(line.ref.display_name, wide),
            "  ",
            (one_line(line.problem or "reading …"), "yellow" if line.problem else "dim"),
        )
    else:
        row = _row(line.ref.display_name, tuple(f"{number:,}" if number else "·" for number in counts), wide)
        if counts[0]:
            row.stylize("bold red", wide + 2, wide + 4 + len(COLUMNS[0]))
    if selected:
        row.stylize("reverse")
    return row


def _row(name: str, cells: tuple[str, ...], wide: int, style: str = "") -> Text:
    numbers = "".join(f"  {cell:>{len(column)}}" for cell, column in zip(cells, COLUMNS, strict=True))
    return Text.assemble(_name(name, wide), numbers, style=style)


def _name(name: str, wide: int) -> Text:
    """The name, shortened at its beginning."""
    display_name = one_line(name)
    return Text((display_name if len(display_name) <= wide else f"…{display_name[-wide + 1 :]}").ljust(wide))

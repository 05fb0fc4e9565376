"""The list of `mam watch`: selection, scrolling and folding."""

from __future__ import annotations

from mam.cli.watch.drawing import DrawContext, draw
from mam.cli.watch.keys import DOWN, END, HOME, PAGE_DOWN, PAGE_UP, UP
from mam.cli.watch.layout import LABEL, MORE, fit_sections, sections
from mam.errors import MamError
from mam.jobs.explain import ExplainContext, explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from mam.cli.watch.layout import Item
    from mam.cli.watch.model import Model
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.util.clock import Moment

_STEPS = {UP: -1, "k": -1, DOWN: 1, "j": 1}
_FAR = 1 << 30


class JobList:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._items: list[Item] = []
        self._selected: str | None = None
        self._at = 0
        """The index of the selection, which stays when the selected line disappears."""
        self._top = 0
        self._room = 1
        self._unfolded: set[str] = set()
        self._lookups: dict[str, Job | None] = {}
        """Jobs that the model does not keep, for the lines on the screen."""

    @property
    def selected(self) -> Item | None:
        item = self._items[self._at] if self._at < len(self._items) else None
        return item if item is not None and item.selectable else None

    def forget(self, job_ids: set[str] | None = None) -> None:
        """Drop the loaded jobs that have changed; None drops all."""
        if job_ids is None:
            self._lookups.clear()
        for job_id in job_ids or ():
            self._lookups.pop(job_id, None)

    def draw(self, model: Model, pauses: Sequence[Pause], now: Moment, width: int, room: int) -> list[Text]:
        self._room = max(1, room)
        self._items = fit_sections(sections(model, now, self._unfolded, self._room), room, self._unfolded)
        self._keep_selection()
        shown = [self._with_job(item) for item in self._items[self._top : self._top + self._room]]
        context = DrawContext(
            now=now, pauses=pauses, last_event=model.last_events.get, explain=lambda job: self._explain(job, now, model)
        )
        return draw(shown, context, width, self._selected)

    def move(self, key: str) -> bool:
        """Whether the key moves the selection."""
        page = max(1, self._room - 2)
        step = {**_STEPS, PAGE_UP: -page, PAGE_DOWN: page, HOME: -_FAR, "g": -_FAR, END: _FAR, "G": _FAR}.get(key)
        if step is None:
            return False
        choices = [at for at, item in enumerate(self._items) if item.selectable]
        if choices:
            rank = sum(at < self._at for at in choices)
            self._select(choices[min(max(0, rank + step), len(choices) - 1)])
        return True

    def unfold(self) -> bool:
        """Whether the selected line unfolds in place."""
        item = self.selected
        if item is None or item.kind not in (LABEL, MORE):
            return False
        self._unfolded ^= {item.key}
        return True

    def fold(self) -> bool:
        folded, self._unfolded = bool(self._unfolded), set()
        return folded

    # -- inside ----------------------------------------------------------------------------------------------------

    def _select(self, at: int) -> None:
        self._at = at
        self._selected = self._items[at].key

    def _keep_selection(self) -> None:
        """Keep the selection on the same job, otherwise on the nearest line."""
        choices = [at for at, item in enumerate(self._items) if item.selectable]
        same = next((at for at in choices if self._items[at].key == self._selected), None)
        if same is not None:
            self._at = same
        elif choices:
            self._select(min(choices, key=lambda at: abs(at - self._at)))
        else:
            self._at, self._selected = 0, None
        self._scroll_to(choices[0] if choices else 0)

    def _scroll_to(self, first: int) -> None:
        """Scroll so that the selection and its unfolded lines are visible; at the first line also the title."""
        below = self._at
        while below + 1 < len(self._items) and self._items[below + 1].depth > self._items[self._at].depth:
            below += 1
        highest = 0 if self._at == first else self._at
        lowest = min(self._at, max(self._at - self._room + 1, below - self._room + 1))
        self._top = max(min(self._top, highest), lowest, 0)
        self._top = min(self._top, max(0, len(self._items) - self._room))

    def _with_job(self, item: Item) -> Item:
        if item.job is not None or item.kind in (LABEL, MORE) or not item.selectable:
            return item
        return item.replace(job=self._lookup(item.key))

    def _lookup(self, job_id: str) -> Job | None:
        if job_id not in self._lookups:
            try:
                self._lookups[job_id] = self._registry.store.newest(job_id)
            except MamError:
                self._lookups[job_id] = None
        return self._lookups[job_id]

    def _explain(self, job: Job, now: Moment, model: Model) -> list[str]:
        """Dependencies come from the model, otherwise from one lookup in the store."""
        needed = {job_id: model.open.get(job_id) or self._lookup(job_id) for job_id in job.after}
        return explain(job, now, ExplainContext(needed=needed))

"""The live table of one store: waits for keys and notifications, draws changes, runs commands."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.text import Text

from mam.cli.answer_prompt import Given
from mam.cli.render.text import first_line, one_line
from mam.cli.watch.answering import QuestionOnScreen, answer, question_lines, question_of
from mam.cli.watch.details import details
from mam.cli.watch.job_list import JobList
from mam.cli.watch.journal_follower import FollowerFailed, JournalFollower, Loaded, NewEntries, Unavailable
from mam.cli.watch.keys import DOWN, ENTER, ESCAPE, PAGE_DOWN, PAGE_UP, PASTE, PASTED, UP
from mam.cli.watch.model import Model
from mam.cli.watch.terminal import Terminal
from mam.errors import BadInput, MamError
from mam.jobs.question import ALLOW, ALWAYS
from mam.machine.person import user_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.watch.journal_follower import Notification
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job
    from mam.questions import Asked
    from mam.registry import Registry
    from mam.stores.port import Query

TICK_SECONDS = 1.0
"""Redraws the ages."""
DRAW_INTERVAL_SECONDS = 0.1
"""The least time between two drawings."""
MESSAGE_SECONDS = 8.0

_STEPS = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -10, PAGE_DOWN: 10}

HINTS = (
    ("↑↓", "select"), ("⏎", "open"), ("a", "answer"), ("c", "cancel"), ("r", "retry"), ("s", "seen"), ("?", "help"),
    ("q", "quit"),
)  # fmt: skip
OPEN_HINTS = (("↑↓", "scroll"), ("a", "answer"), ("c", "cancel"), ("r", "retry"), ("s", "seen"), ("q", "back"))
HELP = """\
SECTIONS

  needs you   asks for permission, is yours to do, is quiet,
              or ended in error within the last hour, neither retried nor seen
  running     the last event, the run time and the attempt
  error       older errors, and those that were retried or seen
  waiting     for a retry, a start time or another job, with the reason
  pending     the number of jobs for each label, and pauses
  done        the latest completed and cancelled jobs

KEYS

  ↑ ↓ j k     select            PgUp PgDn g G   page, start, end
  Enter, o    open the job; unfold a label or “more” (Esc folds)
  a           answer the question of the job: the last line names the keys, also
              those to type a text or a reason, and to unfold a long question
  c           cancel the job, after a question
  r           retry an ended job
  s           mark a failure as seen, which takes it out of “needs you”
  q, Esc      back; q in the list quits

Commands for the same: mam list, show, output, logs, questions, answer,
cancel, retry, seen.
"""
EMPTY = """\
No jobs yet. In another terminal, try

  mam run -- make test
  mam register "Write ten exercises about sorting" --agent shell
  mam worker -s shell
"""


class Screen:
    def __init__(self, registry: Registry, query: Query, title: str, *, has_list_of_stores: bool = False) -> None:
        self._registry = registry
        self._query = query
        self._title = title
        self._has_list_of_stores = has_list_of_stores
        """Whether leaving this screen leads back to the list of all stores."""
        self._hints = (*HINTS[:-1], ("q", "back" if has_list_of_stores else "quit"))
        self._model = Model(registry.store, query)
        self._pauses: list[Pause] = []
        self._list = JobList(registry)
        self._opened: str | None = None
        self._scroll = 0
        self._help = False
        self._asked: Job | QuestionOnScreen | None = None
        """What the next key answers: whether to cancel a job, or a question of a job."""
        self._shown: Asked | None = None
        self._hidden = 0
        """The question that is on the screen, and how many of its lines are folded."""
        self._is_pasting = False
        self._message: tuple[str, str, float] | None = None
        self._problem: str | None = None
        self._loaded = False
        self._dirty = True

    def run(self) -> int:
        follower = JournalFollower(self._registry, self._load)
        with Terminal(follower.wake_fd, follower.wake_write_fd) as self._terminal:
            drawn = 0.0
            while True:
                now = time.monotonic()
                if (self._dirty and now - drawn >= DRAW_INTERVAL_SECONDS) or now - drawn >= TICK_SECONDS:
                    self._draw()
                    self._dirty, drawn = False, time.monotonic()
                due = drawn + (DRAW_INTERVAL_SECONDS if self._dirty else TICK_SECONDS)
                if self._press_all(self._terminal.wait(due - time.monotonic())):
                    follower.stop()
                    return 0
                for notification in follower.drain():
                    self._handle(notification)

    def _load(self) -> Model:
        model = Model(self._registry.store, self._query)
        model.load()
        return model

    # -- notifications ---------------------------------------------------------------------------------------------

    def _handle(self, notification: Notification) -> None:
        self._dirty = True
        match notification:
            case Loaded():
                assert isinstance(notification.what, Model)
                self._model, self._pauses, self._loaded, self._problem = (
                    notification.what,
                    notification.pauses,
                    True,
                    None,
                )
                self._list.forget()
            case NewEntries():
                self._pauses = notification.pauses
                for entry in notification.entries:
                    self._model.apply(entry)
                # A retry replaces its job for every job that depends on it.
                retried = any((entry.fields or {}).get("retry_of") for entry in notification.entries)
                self._list.forget(None if retried else {entry.job_id for entry in notification.entries})
            case Unavailable():
                self._problem = notification.why
            case FollowerFailed():
                raise notification.error

    # -- keys ------------------------------------------------------------------------------------------------------

    def _press_all(self, keys: list[str]) -> bool:
        """Whether a key quits."""
        for key in keys:
            self._dirty = True
            before = self._asked
            if key in (PASTE, PASTED):
                self._is_pasting = key == PASTE
            elif self._press(key):
                return True
            is_typing = isinstance(self._asked, QuestionOnScreen) and self._asked.typed is not None
            if self._asked is not before and not is_typing:
                # Keys typed or pasted before a question appeared do not answer it, and those after an answer are not
                # commands.
                self._terminal.discard_keys()
                break
        return False

    def _press(self, key: str) -> bool:
        """Whether the key quits."""
        self._message = None
        if isinstance(self._asked, QuestionOnScreen):
            self._answer_question(self._asked, key)
        elif self._is_pasting:
            return False
        elif self._asked is not None:
            self._answer(self._asked, key)
        elif self._help:
            self._help = False
        elif key == "?":
            self._help = True
        elif self._opened is not None:
            self._press_opened(key)
        elif key == "q":
            return True
        elif not self._list.move(key):
            return self._press_list(key)
        return False

    def _press_list(self, key: str) -> bool:
        """Whether the key leaves the screen."""
        item = self._list.selected
        if key == ESCAPE:
            return not self._list.fold() and self._has_list_of_stores
        if key in (ENTER, "o") and item is not None and not self._list.unfold():
            self._opened, self._scroll = item.key, 0
        elif key == "a" and item is not None and item.kind == "row":
            self._open_question(item.key)
        elif key in ("c", "r", "s") and item is not None and item.kind == "row":
            self._act(key, item.key)
        return False

    def _press_opened(self, key: str) -> None:
        assert self._opened is not None
        if key in ("q", ESCAPE):
            self._opened = None
        elif key in _STEPS:
            self._scroll = max(0, self._scroll + _STEPS[key])
        elif key == "a":
            self._open_question(self._opened)
        elif key in ("c", "r", "s"):
            self._act(key, self._opened)

    def _open_question(self, job_id: str) -> None:
        """Opens the page of the job, which shows the whole question, and waits for the key of an answer."""
        try:
            shown = question_of(self._registry.store.get(job_id))
        except MamError as error:
            self._show_message(str(error), "red")
            return
        if shown is None:
            self._show_message(f"{job_id[:8]} asks nothing", "yellow")
            return
        self._opened, self._asked = job_id, shown
        self._scroll = 0

    def _act(self, key: str, job_id: str) -> None:
        try:
            job = self._registry.store.get(job_id)
            if key == "s":
                seen = self._registry.mark_seen(job_id, by=user_at_host()).seen or {}
                self._show_message(f"{job_id[:8]} was seen by {seen.get('by')}")
            elif key == "r":
                self._show_message(
                    f"{job_id[:8]} was registered again as {self._registry.retry(job_id).job.job_id[:8]}"
                )
            elif job.status.ended:
                self._show_message(f"{job_id[:8]} has already ended", "yellow")
            else:
                self._asked = job
        except MamError as error:
            self._show_message(str(error), "red")

    def _answer(self, job: Job, key: str) -> None:
        self._asked = None
        if key not in ("y", "Y"):
            self._show_message(f"{job.job_id[:8]} continues")
            return
        try:
            self._registry.cancel(job.job_id, reason="cancelled in mam watch")
            self._show_message(f"{job.job_id[:8]} is cancelled")
        except MamError as error:
            self._show_message(str(error), "red")

    def _answer_question(self, shown: QuestionOnScreen, key: str) -> None:
        """Keys that move still do; a key without a meaning leaves the question open."""
        if self._shown is not shown.asked:
            return  # it has not been drawn yet
        if shown.typed is None and key in _STEPS:
            self._scroll = max(0, self._scroll + _STEPS[key])
            return
        after = shown.press(key, is_pasted=self._is_pasting)
        if not isinstance(after, Given):
            self._asked = after
            if after is None:
                self._show_message(f"{shown.name} stays open", "yellow")
            return
        if self._hidden and after.answer in (ALLOW, ALWAYS):
            self._show_message(f"f shows the {self._hidden:,} lines that you have not seen", "yellow")
            return
        try:
            message = answer(self._registry, shown, after, user_at_host())
            self._asked = None
            self._show_message(message)
        except MamError as error:
            if not isinstance(error, BadInput):  # the answer can be corrected
                self._asked = None
            self._show_message(str(error), "red")

    def _show_message(self, words: str, style: str = "green") -> None:
        self._message = (one_line(words), style, time.monotonic() + MESSAGE_SECONDS)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        width, height = self._terminal.size
        console = Console(file=sys.stdout, width=width, height=height, highlight=False)
        room = max(1, height - 3)
        lines = [self._header(width), Text(), *self._body(console, width, room)[:room]]
        lines += [Text()] * (height - 1 - len(lines))
        lines = [*lines[: max(0, height - 1)], self._footer(width)]
        if isinstance(self._asked, QuestionOnScreen) and (message := self._fresh_message()) is not None:
            lines[-2:-1] = [message]
        self._terminal.show([render_line(console, line, width) for line in lines[-height:]])

    def _body(self, console: Console, width: int, room: int) -> list[Text]:
        if self._help:
            return [Text(line) for line in HELP.splitlines()]
        if self._opened is not None:
            return self._details(console, room)
        if not self._loaded:
            return [Text("  reading …", style="dim")]
        now = self._registry.store.clock.now()
        lines = self._list.draw(self._model, self._pauses, now, width, room)
        return lines or [Text(f"  {line}", style="dim") for line in EMPTY.splitlines()]

    def _details(self, console: Console, room: int) -> list[Text]:
        assert self._opened is not None
        try:
            lines = details(self._registry, self._opened, console, room)
            if isinstance(self._asked, QuestionOnScreen):
                question, self._hidden = question_lines(self._asked, console.width, room)
                lines, self._shown = [*question, *lines], self._asked.asked
        except MamError as error:
            return [Text(f"  {one_line(str(error))}", style="red")]
        self._scroll = min(self._scroll, max(0, len(lines) - room))
        return lines[self._scroll :]

    def _header(self, width: int) -> Text:
        now = self._registry.store.clock.now()
        needs, running, waiting, pending, _ = self._model.counts(now)
        counts = [
            (f"{needs:,} need{'s' * (needs == 1)} you", "bold red" if needs else ""),
            (f"{running:,} running", ""),
            (f"{waiting:,} waiting", ""),
            (f"{pending:,} pending", ""),
        ]
        right = Text(" · ").join(Text(words, style=style) for words, style in counts)
        if any(pause.agent is None and pause.label is None and pause.is_active(now) for pause in self._pauses):
            right = Text.assemble(("everything is paused", "bold yellow"), " · ", right)
        left = Text.assemble(("mam ", "bold"), one_line(self._title))
        if not self._loaded:
            return left
        spare = width - right.cell_len - 2
        left.truncate(max(0, spare), overflow="ellipsis", pad=True)
        return Text.assemble(left, "  ", right) if spare > 0 else right

    def _fresh_message(self) -> Text | None:
        if self._message is None or self._message[2] <= time.monotonic():
            return None
        return Text(self._message[0], style=self._message[1])

    def _footer(self, width: int) -> Text:
        if isinstance(self._asked, QuestionOnScreen):
            return self._asked.footer(width, self._hidden)
        if self._asked is not None:
            job = self._asked
            question = f"cancel {job.job_id[:8]}, {job.status}: {first_line(job.prompt)[:60]}"
            return Text.assemble(("y/n ", "bold red"), (question, "bold"))
        message = self._fresh_message()
        if message is not None:
            return message
        if self._problem is not None:
            return Text(f"cannot read the store: {one_line(self._problem)}", style="bold red")
        hints = (("any key", "back"),) if self._help else OPEN_HINTS if self._opened is not None else self._hints
        return Text("   ").join(Text.assemble((key, "bold"), " ", (what, "dim")) for key, what in hints)


def render_line(console: Console, line: Text, width: int) -> str:
    line.truncate(width, overflow="ellipsis", pad=True)
    with console.capture() as captured:
        console.print(line, end="", soft_wrap=True)
    return captured.get()

"""Watch the inbox for changes. The watcher reports that something changed; a scan of the tree shows what."""

from __future__ import annotations

from threading import Event, Thread

from mam.errors import BadInput
from mam.util.extras import command_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_STEP_MS, _DEBOUNCE_MS = 200, 400
_WAKE_MS = 60_000
"""How long its thread sleeps at a time; stopping does not wait for it."""


def require_watchfiles() -> ModuleType:
    """Called before mam creates anything: without watchfiles an inbox is rejected and leaves no files."""
    try:
        import watchfiles
    except ImportError:
        raise BadInput(why=f"the inbox needs the extra `inbox`: {command_for('inbox')}") from None
    return watchfiles


class FileWatcher:
    """A thread that calls `on_change`. If the system has no watches left, it calls `on_error`, and periodic scans take
    over."""

    def __init__(self, directory: str, on_change: Callable[[], None], on_error: Callable[[str], None]) -> None:
        self._directory = directory
        self._on_change = on_change
        self._on_error = on_error
        self._stopped = Event()
        self._thread = Thread(target=self._watch, name="mam-eye", daemon=True)
        self._watchfiles = require_watchfiles()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Does not wait for the thread: it has nothing to finish."""
        self._stopped.set()

    def _watch(self) -> None:
        try:
            for _ in self._watchfiles.watch(
                self._directory, watch_filter=None, debounce=_DEBOUNCE_MS, step=_STEP_MS, rust_timeout=_WAKE_MS,
                stop_event=self._stopped, raise_interrupt=False, ignore_permission_denied=True,
            ):  # fmt: skip
                self._on_change()
        except Exception as error:  # periodic scans continue, whatever the error is
            if not self._stopped.is_set():
                self._on_error(str(error))

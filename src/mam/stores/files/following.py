"""Sleeping until the journal has something new, without asking for the lock while somebody acts."""

from __future__ import annotations

import os
import time

from mam.errors import StoreMissing
from mam.stores.files.mark import IN_WORK
from mam.stores.files.mark import NAME as MARK
from mam.stores.watch import BELL, COMING, UNKNOWN, Watch, records_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.stores.files.mark import Mark
    from mam.stores.watch import Happened

_ACT_SECONDS = 0.02
"""Longer than most acts: by then whoever was acting is done, and a mark that still says nothing is not believed."""


def open_watch(directory: str, home: str, before: str | None) -> Watch:
    """A store that somebody has removed is not made again by those who only wait for it."""
    try:
        os.mkdir(home, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        raise StoreMissing(store=directory) from None
    mark = os.path.join(home, MARK)
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600))
    except OSError:
        return Watch(directory, records_changed())  # something else has its name; records still change
    return Watch(directory, records_changed(), first=mark, before=before)


def await_news(
    watch: Watch,
    cursor: str,
    timeout: float,
    look: Callable[[], Mark | None],
    end: Callable[[], str],
    foresee: Callable[[], None],
) -> bool:
    """`look` is the mark, or None in doubt; `end` takes the lock, and sees on the way what others have done; `foresee`
    is for what is written and not yet durable."""
    ends = time.monotonic() + timeout
    is_certain = False
    while True:
        mark = look()
        if mark is not None and f"{mark.first}:{mark.offset}" != cursor:
            return True
        left = max(0.0, ends - time.monotonic())
        if is_certain or (mark is not None and mark.directory_ns != IN_WORK):
            happened = watch.happened(left)
            if not happened or any(map(_is_outside, happened)):
                return bool(happened)
            is_certain = False
        elif not (happened := watch.happened(min(left, _ACT_SECONDS))):
            if end() != cursor:
                return True
            is_certain = True
        elif any(map(_is_outside, happened)):
            return True
        if any(one is COMING for one in happened):
            foresee()
            # Next comes the mark, which says all of it; that it was written is read when there is time.
            watch.await_first(min(max(0.0, ends - time.monotonic()), _ACT_SECONDS))


def _is_outside(happened: Happened) -> bool:
    """What is no act of the journal: a bell, an edit in place (mam renames its records), or nobody knows."""
    if happened is UNKNOWN or happened.name == os.fsencode(BELL):
        return True
    return happened.written and happened.name.endswith(b".json")

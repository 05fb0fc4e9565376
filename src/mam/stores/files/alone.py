"""Alone with the book: how a files store is opened, locked, caught up, distrusted after an error, and closed."""

from __future__ import annotations

import os
from _thread import RLock, get_ident
from errno import EDQUOT, ENOSPC, EROFS

from mam.clock import SystemClock
from mam.errors import StoreReadOnly, StoreUnavailable
from mam.stores.files.book import INDEX, STORE, Book
from mam.stores.files.catch_up import catch_up
from mam.stores.files.directory import Directory
from mam.stores.files.index import DatabaseError, is_damage, put_aside
from mam.stores.files.lock import WAIT_SECONDS, registry_lock
from mam.stores.files.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from mam.clock import Clock
    from mam.stores.files.mark import Mark
    from mam.stores.files.read_only import ReadOnlyView
    from mam.stores.watch import Watch

    T = TypeVar("T")


class Alone:
    """Half of the files store; the port is the other half."""

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        self.address = os.path.realpath(path)
        self.clock: Clock = clock or SystemClock()
        self._lock_wait_seconds = lock_wait_seconds
        self._threads = RLock()
        self._book: Book | None = None
        self._process = os.getpid()
        self._abandoned: Book | None = None
        self._watches: dict[int, Watch] = {}
        """One for each thread that waits: news that one has read would be lost to the other."""
        self._heard: dict[int, Mark] = {}
        """The mark that ended the last wait of each thread that has not taken the lock since."""
        self._directory = Directory(self.address)  # says at once what is wrong with it

    @property
    def home(self) -> str:
        return os.path.join(self.address, STORE)

    def close(self) -> None:
        self._notice_fork()
        with self._threads:
            for watch in self._watches.values():
                watch.close()
            self._watches = {}
            self._close_book()
            self._directory.close()

    def _alone(self, do: Callable[[Book], T], *, thoroughly: bool = False) -> T:
        self._notice_fork()
        self._heard.pop(get_ident(), None)
        with self._threads, registry_lock(self.address, self._lock_wait_seconds, is_real=True):
            try:
                return self._try(do, thoroughly)
            except DatabaseError as error:
                if not is_damage(error):
                    raise _unavailable(self.address, error) from None
                # The index is only a cache; nothing was committed by whoever could not read it.
                self._close_book()
                try:
                    put_aside(os.path.join(self.home, INDEX))
                except OSError as problem:
                    raise _unavailable(self.address, problem) from None
            try:
                return self._try(do, thoroughly)
            except DatabaseError as error:
                raise _unavailable(self.address, error) from None

    def _try(self, do: Callable[[Book], T], thoroughly: bool) -> T:
        try:
            book = self._opened()
            catch_up(book, thoroughly=thoroughly)
            return do(book)
        except OSError as error:
            self._distrust()
            raise _unavailable(self.address, error) from None
        finally:
            if self._book is not None:
                self._book.index.roll_back()
                if self._book.behind:
                    self._distrust()

    def _opened(self) -> Book:
        if not self._directory.is_still():
            self._close_book()
            self._directory = Directory(self.address)
            for watch in list(self._watches.values()):
                watch.is_over = True  # it is of a directory that others do not write to any more
        if self._book is None:
            self._book = Book(self._directory, self.clock)
        return self._book

    def _close_book(self) -> None:
        if self._book is not None:
            self._book.close()
            self._book = None

    def _distrust(self) -> None:
        """What is open may be part of the trouble, and what could not be synced is not synced again on the same
        descriptor: the kernel may have called it clean."""
        self._close_book()
        self._directory.close()

    def _notice_fork(self) -> None:
        """A child must not use its parent's connection, nor wait for a thread that only its parent has."""
        if self._process != os.getpid():
            self._threads = RLock()
            self._abandoned = self._book  # not closed: that would be the parent's database
            self._book, self._watches, self._heard = None, {}, {}
            self._process = os.getpid()

    def _read(self, ask: Callable[[Book], T], ask_view: Callable[[ReadOnlyView], T], *, thoroughly: bool = False) -> T:
        """A store that cannot be written is read as its files are."""
        try:
            return self._alone(ask, thoroughly=thoroughly)
        except StoreReadOnly:
            from mam.stores.files.read_only import ReadOnlyView

            with ReadOnlyView(self.address) as view:
                return ask_view(view)

    def _records(self) -> Records:
        if self._book is not None:
            return self._book.records
        if not self._directory.is_still():
            self._directory = Directory(self.address)
        return Records(self._directory)


def _unavailable(address: str, error: OSError | DatabaseError) -> StoreUnavailable:
    problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
    full = error.errno in (ENOSPC, EDQUOT, EROFS) if isinstance(error, OSError) else "full" in problem
    # What cannot be written can still be read.
    return (StoreReadOnly if full else StoreUnavailable)(store=address, problem=problem)

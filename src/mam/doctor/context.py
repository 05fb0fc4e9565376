"""What the checks look at: the settings and the store, as far as they can be opened."""

from __future__ import annotations

import os

from mam.config.settings import Config, load_config
from mam.errors import MamError, StoreUnavailable, StoreUntrusted
from mam.location.stores import FILES, POSTGRES, SQLITE_KIND, check_ownership, locate, open_store
from mam.stores.files.layout import is_files_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.doctor.open_jobs import Survey
    from mam.location.stores import StoreLocation
    from mam.stores.port import Store


class Patient:
    """Nothing here raises but `store`, which says why there is none. What was wrong with one way to look at it must not
    keep the other checks from looking."""

    def __init__(
        self, flag_store: str | None, flag_registry_dir: str | None, saw: Callable[[str], None] = lambda _what: None
    ) -> None:
        self.saw = saw
        """Hears of each record that is read: there may be a million of them."""
        self.bad_settings: MamError | None = None
        self.not_located: MamError | None = None
        self.located: StoreLocation | None = None
        self.closed: MamError | None = None
        """Why the store is not opened: a check has found something that has to be mended first."""
        self._store: Store | None = None
        self._survey: Survey | None = None
        self._is_store: bool | None = None
        try:
            self.config = load_config()
        except MamError as error:
            self.bad_settings, self.config = error, Config()
        try:
            self.located = locate(flag_store, flag_registry_dir, self.config)
            check_ownership(self.located)
        except StoreUntrusted as error:
            self.closed = error
        except MamError as error:
            self.not_located = error

    @property
    def kind(self) -> str | None:
        return None if self.located is None else self.located.kind

    @property
    def directory(self) -> str | None:
        """Where a store of this host keeps its files, if it is there and the user's own."""
        return None if isinstance(self.closed, StoreUntrusted) else self.place

    @property
    def place(self) -> str | None:
        """The same of a store that is not opened because it came with a repository: nothing in it is read."""
        if self.located is None or self.located.kind == POSTGRES:
            return None
        if self.located.kind == FILES:
            return os.path.realpath(self.located.path) if self.is_store else None
        return os.path.realpath(os.path.dirname(self.located.path)) if self.located.exists else None

    @property
    def is_store(self) -> bool:
        """Whether a directory that was named is one of mam's. Opening another one would make a store of it, and mending
        it would be an attack."""
        if self._is_store is None:
            path = self.located.path if self.located is not None and self.located.kind == FILES else ""
            self._is_store = is_files_store(path)
        return self._is_store

    @property
    def home(self) -> str | None:
        """The private directory of a files store."""
        return os.path.join(self.directory, ".store") if self.kind == FILES and self.directory else None

    @property
    def database(self) -> str | None:
        located = self.located if not isinstance(self.closed, StoreUntrusted) else None
        return located.path if located is not None and located.kind == SQLITE_KIND and located.exists else None

    @property
    def store(self) -> Store:
        if self._store is None:
            if self.closed is not None:
                raise self.closed
            if self.located is None:
                raise self.not_located or StoreUnavailable(store="the store", problem="is not known")
            if self.located.kind == FILES and not self.is_store:
                raise StoreUnavailable(store=self.located.shown, problem="nothing in it is mam's")
            self._store = open_store(self.located, self.config)
        return self._store

    def opened(self) -> Store | None:
        """The store for checks that can do without."""
        try:
            return self.store
        except (MamError, OSError):
            return None

    def survey(self) -> Survey | None:
        """All jobs, read once; None when they cannot be."""
        store = self.opened()
        if self._survey is None and store is not None:
            from mam.doctor.open_jobs import survey

            self._survey = survey(store, self.saw)
        return self._survey

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

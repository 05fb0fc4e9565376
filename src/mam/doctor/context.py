"""What the checks share: the settings, the store and a survey of its jobs."""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice

from mam.config.settings import Config, load_config
from mam.errors import MamError, StoreUnavailable, StoreUntrusted
from mam.jobs.status import ENDED, RUNNING, Status
from mam.jobs.sweep import next_deadline
from mam.location.stores import FILES, POSTGRES, SQLITE_KIND, check_ownership, locate, open_store
from mam.stores.files.layout import is_files_store
from mam.stores.port import Query
from mam.util.clock import parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.location.stores import StoreLocation
    from mam.stores.port import Problem, Store

LATE_MS = 60_000
NEWEST = 50


class JobSurvey(Frozen):
    statuses: Counter[str]
    open_agents: Counter[str]
    """The agents of open jobs."""
    latest_ms: int | None
    """The latest `updated_at` of the open and the newest jobs."""
    expired: list[str]
    """Running jobs whose lease expired more than a minute ago."""
    problems: list[Problem]


class Context:
    """Only `store` raises an error; the other members return None, so that the other checks still run."""

    def __init__(
        self,
        flag_store: str | None,
        flag_registry_dir: str | None,
        on_record: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self.on_record = on_record
        """Called for each record, for the progress line."""
        self.bad_settings: MamError | None = None
        self.not_located: MamError | None = None
        self.located: StoreLocation | None = None
        self.not_opened: MamError | None = None
        """Why mam does not open the store: a check has found a problem that needs a repair first."""
        self._store: Store | None = None
        self._survey: JobSurvey | None = None
        self._is_store: bool | None = None
        try:
            self.config = load_config()
        except MamError as error:
            self.bad_settings, self.config = error, Config()
        try:
            self.located = locate(flag_store, flag_registry_dir, self.config)
            check_ownership(self.located)
        except StoreUntrusted as error:
            self.not_opened = error
        except MamError as error:
            self.not_located = error

    @property
    def kind(self) -> str | None:
        return None if self.located is None else self.located.kind

    @property
    def directory(self) -> str | None:
        """The directory of a local store, if it exists and the user trusts it."""
        return None if isinstance(self.not_opened, StoreUntrusted) else self.directory_unchecked

    @property
    def directory_unchecked(self) -> str | None:
        """The same without the check of trust; no file in it is read."""
        if self.located is None or self.located.kind == POSTGRES:
            return None
        if self.located.kind == FILES:
            return os.path.realpath(self.located.path) if self.is_store else None
        return os.path.realpath(os.path.dirname(self.located.path)) if self.located.exists else None

    @property
    def is_store(self) -> bool:
        """Whether the directory is a store. Opening another directory would create a store in it, and repairs would
        change foreign files."""
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
        located = self.located if not isinstance(self.not_opened, StoreUntrusted) else None
        return located.path if located is not None and located.kind == SQLITE_KIND and located.exists else None

    @property
    def store(self) -> Store:
        if self._store is None:
            if self.not_opened is not None:
                raise self.not_opened
            if self.located is None:
                raise self.not_located or StoreUnavailable(store="the store", problem="is not known")
            if self.located.kind == FILES and not self.is_store:
                raise StoreUnavailable(store=self.located.shown, problem="it contains no store")
            self._store = open_store(self.located, self.config)
        return self._store

    def try_open(self) -> Store | None:
        """The store; None if it cannot be opened."""
        try:
            return self.store
        except (MamError, OSError):
            return None

    def survey(self) -> JobSurvey | None:
        """The open jobs, read once; None if the store cannot be opened."""
        store = self.try_open()
        if self._survey is None and store is not None:
            self._survey = survey_jobs(store, self.on_record)
        return self._survey

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


def survey_jobs(store: Store, on_record: Callable[[str], None]) -> JobSurvey:
    open_agents: Counter[str] = Counter()
    latest: int | None = None
    expired: list[str] = []
    late = store.clock.now().wall_ms - LATE_MS
    for job in store.select(Query(statuses=frozenset(Status) - ENDED)):
        on_record("open jobs")
        latest = max(latest or 0, parse_time(job.updated_at))
        open_agents[job.agent] += 1
        end = next_deadline(job) if job.status is RUNNING else None
        if end is not None and end.wall_ms < late:
            expired.append(job.job_id)
    for job in islice(store.select(Query()), NEWEST):
        latest = max(latest or 0, parse_time(job.updated_at))
    return JobSurvey(
        statuses=Counter(store.counts()), open_agents=open_agents, latest_ms=latest, expired=expired,
        problems=store.problems(),
    )  # fmt: skip

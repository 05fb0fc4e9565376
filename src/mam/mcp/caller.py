"""On whose behalf a request runs, and what that allows. The transport decides it; nothing in a request changes it."""

from __future__ import annotations

from mam.errors import Refused
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.config.settings import Config
    from mam.registry import Registry

SHELL = "shell"


class Caller(Frozen):
    """The rights of one caller of the tools."""

    name: str
    """For the audit log: user@host, or the name of a token."""
    may_write: bool = True
    is_worker: bool = False
    """Whether `claim` and `report` are offered."""
    accepts_shell: bool = False
    may_answer: bool = True
    """Whether the person behind the client may answer questions of kind `question` and `review`."""
    own_job: str | None = None
    """The job inside which the caller runs: what it submits becomes a child of this job."""
    directory: str | None = None
    """The directory of its jobs; None for a caller on another machine, whose jobs run in fresh directories."""
    accepted_directories: tuple[str, ...] = ()


class Service:
    """What the tools act on: the registry, opened when a tool first needs it, and the caller."""

    def __init__(self, caller: Caller, open_registry: Callable[[bool], Registry], config: Callable[[], Config]) -> None:
        self.caller = caller
        self._open = open_registry
        self._load_config = config
        self._registry: Registry | None = None
        self._config: Config | None = None

    @property
    def registry(self) -> Registry:
        return self.open()

    def open(self, *, create: bool = False) -> Registry:
        """With `create`, a store that does not exist is made."""
        if self._registry is None:
            self._registry = self._open(create)
        return self._registry

    @property
    def config(self) -> Config:
        if self._config is None:
            self._config = self._load_config()
        return self._config

    def check_may_write(self) -> None:
        if not self.caller.may_write:
            raise Refused(why="This server was started with --read-only; it changes nothing.")

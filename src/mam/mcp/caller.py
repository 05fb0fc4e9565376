"""On whose behalf a request runs, and what that allows. The transport decides it; nothing in a request changes it."""

from __future__ import annotations

from mam.errors import Refused
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.config.settings import Config
    from mam.mcp.backend import Backend


class Caller(Frozen):
    """The rights of one caller of the tools."""

    name: str
    """For the audit log: user@host, or the name of a token."""
    may_write: bool = True
    may_submit: bool = True
    """Whether `submit`, `cancel` and `ask` are offered, if it may write."""
    is_worker: bool = False
    """Whether `claim` and `report` are offered."""
    may_answer: bool = True
    """Whether the person behind the client may answer questions: never inside a job."""
    accepts_shell: bool = False
    own_job: str | None = None
    """The job inside which the caller runs: what it submits becomes a child of this job."""
    directory: str = "/"
    """The directory of its jobs on this host, without links."""
    accepted_directories: tuple[str, ...] = ()


class Service:
    """What the tools act on."""

    def __init__(self, caller: Caller, backend: Backend, config: Callable[[], Config]) -> None:
        self.caller = caller
        self.backend = backend
        self._load_config = config
        self._config: Config | None = None

    @property
    def config(self) -> Config:
        if self._config is None:
            self._config = self._load_config()
        return self._config

    def check_may_write(self) -> None:
        if not self.caller.may_write:
            raise Refused(why="This server was started with --read-only; it changes nothing.")

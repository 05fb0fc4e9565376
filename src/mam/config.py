"""Settings: flag > environment > the user's file > the project's file > default.

The project's file is somebody else's word until `mam trust` has been told otherwise (see project.py).
"""

from __future__ import annotations

import os

from mam.errors import BadConfig, BadInput
from mam.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Values = dict[str, Any]


class Config(Frozen):
    store: str | None = None
    """Where the jobs are when neither a flag nor MAM_STORE says so; absolute, or beginning with ~."""
    default_agent: str | None = None
    """Who gets a job registered without --agent."""
    require_attempt: bool = False
    """Whether a write to a running job must name its attempt."""
    lock_wait_seconds: float = 10.0
    """How long to wait for a store that somebody else has locked."""
    max_depth: int = 3
    """How deep jobs may register jobs below them; 0 is not at all."""
    on_idle: str = "show"
    """What a worker does about a silent agent: `show` it, or `stop` it."""
    on_limit: str = "wait"
    """What a worker does at an agent's usage limit: `wait` for its end and go on, or `fail` the job."""
    workdirs: dict[str, str] = {}  # noqa: RUF012 - nothing in mam writes into a record's tables
    """Where the directories of other hosts are on this one: the beginning of a path there, and its place here."""
    commands: dict[str, Values] = {}  # noqa: RUF012
    """The user's own agents by name: `argv`, `prompt`, `success`, `env`, `retry_codes`."""
    broker: Values = {}  # noqa: RUF012
    """Where events are sent: `host`, `port`, `tls`, `username`, `password_file`, `ca_certs`, `certfile`, `keyfile`,
    `client_id_prefix`, `insecure`. Taken whole from one file, so that no password goes to another file's host."""


_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_TABLES = ("workdirs", "commands")


def load_config() -> Config:
    """The settings that count here. MAM_STORE stays out: the workspace says why it won."""
    from mam.project import project_values

    user, project = _from_user(), project_values()
    merged = {**project, **user, **_from_environment()}
    for table in _TABLES:
        if table in project and table in user:
            merged[table] = {**project[table], **user[table]}
    return Config(**merged)


def config_file() -> str:
    named = os.environ.get("MAM_CONFIG")
    if named:
        return os.path.abspath(named)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "mam", "config.toml")


def _from_user() -> Values:
    file = config_file()
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("MAM_CONFIG"):
            raise BadConfig(file=file, problem="MAM_CONFIG names this file, but there is none") from None
        return {}
    except OSError as error:
        raise BadConfig(file=file, problem=error.strerror) from None
    from mam.config_file import read_values

    key = [file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    return read_values("config.json", key, file, lambda: _content(file))


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise BadConfig(file=file, problem=error.strerror) from None


def _from_environment() -> Values:
    values: Values = {}
    agent = os.environ.get("MAM_DEFAULT_AGENT")
    if agent:
        values["default_agent"] = agent
    attempt = os.environ.get("MAM_REQUIRE_ATTEMPT")
    if attempt:
        if attempt.lower() not in _WORDS:
            raise BadInput(why="MAM_REQUIRE_ATTEMPT must be 1 or 0")
        values["require_attempt"] = _WORDS[attempt.lower()]
    wait = os.environ.get("MAM_LOCK_WAIT_SECONDS")
    if wait:
        values["lock_wait_seconds"] = _wait_seconds(wait)
    idle = os.environ.get("MAM_ON_IDLE")
    if idle:
        if idle not in ("show", "stop"):
            raise BadInput(why="MAM_ON_IDLE must be show or stop")
        values["on_idle"] = idle
    limit = os.environ.get("MAM_ON_LIMIT")
    if limit:
        if limit not in ("wait", "fail"):
            raise BadInput(why="MAM_ON_LIMIT must be wait or fail")
        values["on_limit"] = limit
    return values


def _wait_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise BadInput(why="MAM_LOCK_WAIT_SECONDS must be a number of seconds between 0 and 3600")
    return seconds

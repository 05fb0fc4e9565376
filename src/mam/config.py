"""Settings: flag > environment > the user's file > default. Unknown keys are errors, so that a typo is never silent.

Reading TOML costs most of an interpreter's start, so what was parsed is kept as JSON in the user's cache and used for
as long as the file is the same file. A cache that cannot be read or written is never an error.
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


_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "store": ((str,), "a text"),
    "default_agent": ((str,), "a text"),
    "require_attempt": ((bool,), "true or false"),
    "lock_wait_seconds": ((int, float), "a number"),
}
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def load_config() -> Config:
    """The user's settings with the environment over them. MAM_STORE stays out: the workspace says why it won."""
    file = config_file()
    return Config(**{**_from_file(file), **_from_environment()})


def config_file() -> str:
    named = os.environ.get("MAM_CONFIG")
    if named:
        return os.path.abspath(named)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "mam", "config.toml")


def _from_file(file: str) -> Values:
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("MAM_CONFIG"):
            raise BadConfig(file=file, problem="MAM_CONFIG names this file, but there is none") from None
        return {}
    except OSError as error:
        raise BadConfig(file=file, problem=error.strerror) from None
    key = [file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    cached = _read_cache(key)
    if cached is not None:
        return cached
    values = _checked(_parsed(file), file)
    _write_cache(key, values)
    return values


def _parsed(file: str) -> Values:
    import tomllib

    try:
        with open(file, "rb") as opened:
            return tomllib.load(opened)
    except OSError as error:
        raise BadConfig(file=file, problem=error.strerror) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(file=file, problem=f"not valid TOML: {error}") from None


def _checked(values: Values, file: str) -> Values:
    for name, value in values.items():
        if name not in _KINDS:
            raise BadConfig(file=file, problem=f"{name!r} is not a setting{_nearest(name)}")
        kinds, wanted = _KINDS[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BadConfig(file=file, problem=f"{name} must be {wanted}")
    wait = values.get("lock_wait_seconds", 0)
    if not 0 <= wait <= 3600:
        raise BadConfig(file=file, problem="lock_wait_seconds must be between 0 and 3600")
    store = values.get("store", "/")
    if not (store.startswith(("/", "~")) or "://" in store):
        raise BadConfig(file=file, problem="store must be an absolute path, since this file counts everywhere")
    return values


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, _KINDS, n=1, cutoff=0.5)
    return f" (did you mean {found[0]}?)" if found else f"; there are {', '.join(_KINDS)}"


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
    return values


def _wait_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise BadInput(why="MAM_LOCK_WAIT_SECONDS must be a number of seconds between 0 and 3600")
    return seconds


def _cache_file() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "mam", "config.json")


def _read_cache(key: list[object]) -> Values | None:
    import json

    try:
        with open(_cache_file(), "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            cached = json.loads(file.read())
        if cached["key"] != key:
            return None
        return _checked(cached["values"], "cache")
    except Exception:
        return None


def _write_cache(key: list[object], values: Values) -> None:
    import json

    file = _cache_file()
    temporary = f"{file}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as opened:
            opened.write(json.dumps({"key": key, "values": values}))
        os.replace(temporary, file)
    except (OSError, ValueError):
        return

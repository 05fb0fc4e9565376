"""Reads and checks a settings file (TOML). An unknown key is an error, so that typos are noticed.

Parsing TOML takes almost as long as starting the interpreter. So the parsed values are cached as JSON in the user's
cache directory until the file changes. A failure of the cache is ignored.
"""

from __future__ import annotations

import os

from mam.errors import BadConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.config.settings import Setting, Values

DEPTH_LIMIT = 16
"""Levels of tables and lists; no setting has more than five."""


def read_values(cache: str, key: list[object], file: str, content: Callable[[], bytes]) -> Values:
    """The values of the file, from the cache if its `key` is the same."""
    cached = _read_cache(cache, key)
    if cached is not None:
        return cached
    values = check_values(parse_toml(content(), file), file)
    _write_cache(cache, key, values)
    return values


def parse_toml(content: bytes, file: str) -> Values:
    try:
        return read_toml(content.decode())
    except ValueError as error:
        raise BadConfig(file=file, problem=f"not valid TOML: {error}") from None


def read_toml(text: str) -> Values:
    """ValueError for invalid or deeply nested TOML, which tomlkit and the cache could not read."""
    import tomllib

    from mam.util.strict_json import is_deeper

    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if is_deeper(values, DEPTH_LIMIT):
        raise ValueError("nested too deeply")
    return values


def check_values(values: Values, file: str) -> Values:
    from mam.config.settings import SETTINGS, problem_with

    known = {setting.name: setting for setting in SETTINGS}
    check_names(values, known, "a setting", file)
    for name, value in values.items():
        problem = problem_with(known[name], value)
        if problem is not None:
            raise BadConfig(file=file, problem=f"{name} {problem}")
    store = values.get("store", "/")
    if not (store.startswith(("/", "~")) or "://" in store):
        problem = "store must be an absolute path, sqlite:///path or postgresql://…: this file applies everywhere"
        raise BadConfig(file=file, problem=problem)
    if any(name in values for name in ("workdirs", "commands", "broker", "children")):
        from mam.config.tables import check_broker, check_children, check_command, check_workdirs

        check_children(values.get("children", {}), file)
        check_broker(values.get("broker", {}), file)
        check_workdirs(values.get("workdirs", {}), file)
        for name, table in values.get("commands", {}).items():
            check_command(name, table, file)
    if "questions" in values:
        from mam.config.tables import QUESTIONS

        check_table("questions", QUESTIONS, values["questions"], file)
    if "agents" in values:
        from mam.config.tables import check_agents

        check_agents(values["agents"], file)
    if "prices" in values:
        from mam.config.tables import check_prices

        check_prices(values["prices"], file)
    if "inbox" in values or "queue" in values or "repos" in values:
        from mam.config.inbox import check_inbox, check_queue, check_repos

        check_inbox(values.get("inbox", {}), file)
        check_queue(values.get("queue", {}), file)
        check_repos(values.get("repos", {}), file)
    if "rules" in values:
        from mam.config.tables import check_rules

        check_rules(values["rules"], file)
    if "output" in values:
        from mam.config.tables import OUTPUT

        check_table("output", OUTPUT, values["output"], file)
    if "push" in values:
        from mam.config.tables import PUSH

        check_table("push", PUSH, values["push"], file)
    return values


def check_table(name: str, settings: tuple[Setting, ...], table: Values, file: str) -> None:
    """Checks a table with fixed names and types."""
    from mam.config.settings import problem_with

    known = {setting.name: setting for setting in settings}
    check_names(table, known, f"a setting of {name}", file)
    for key, value in table.items():
        problem = problem_with(known[key], value)
        if problem is not None:
            raise BadConfig(file=file, problem=f"{name}: {key} {problem}")


def check_names(values: Iterable[str], known: Iterable[str], what: str, file: str) -> None:
    for name in values:
        if name not in known:
            raise BadConfig(file=file, problem=f"{name[:80]!r} is not {what}{_nearest(name, known)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {found[0]}?)" if found else f"; there are {', '.join(known)}"


def cache_directory() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "mam")


def _cache_file(name: str) -> str:
    return os.path.join(cache_directory(), name)


def _read_cache(name: str, key: list[object]) -> Values | None:
    import json

    try:
        with open(_cache_file(name), "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            cached = json.loads(file.read())
        if cached["key"] != key:
            return None
        return check_values(cached["values"], "cache")
    except Exception:
        return None


def _write_cache(name: str, key: list[object], values: Values) -> None:
    import json

    file = _cache_file(name)
    temporary = f"{file}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as opened:
            opened.write(json.dumps({"key": key, "values": values}))
        os.replace(temporary, file)
    except (OSError, ValueError, TypeError):
        return

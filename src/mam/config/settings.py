"""Settings: flag > environment > the user's file > the project's file > default.

Before `mam trust`, only harmless settings of the project's file count (see project.py).
"""

from __future__ import annotations

import os

from mam.errors import BadConfig, BadInput
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Values = dict[str, Any]


class Config(Frozen):
    """The effective settings, by name; SETTINGS describes each of them."""

    store: str | None = None
    default_agent: str | None = None
    require_attempt: bool = False
    lock_wait_seconds: float = 10.0
    max_depth: int = 3
    on_idle: str = "show"
    on_limit: str = "wait"
    retention_days: float = 30.0
    agent_prefix: str = "MAM"
    workdirs: dict[str, str] = {}  # noqa: RUF012 - nothing in mam writes into a record's tables
    commands: dict[str, Values] = {}  # noqa: RUF012
    agents: dict[str, Values] = {}  # noqa: RUF012
    prices: dict[str, Values] = {}  # noqa: RUF012
    children: Values = {}  # noqa: RUF012
    questions: Values = {}  # noqa: RUF012
    rules: list[Values] = []  # noqa: RUF012
    broker: Values = {}  # noqa: RUF012
    inbox: Values = {}  # noqa: RUF012
    queue: Values = {}  # noqa: RUF012
    repos: dict[str, str] = {}  # noqa: RUF012
    output: Values = {}  # noqa: RUF012
    push: Values = {}  # noqa: RUF012


class Setting(Frozen):
    """One row of the table of settings, for reading, writing, checking and documenting."""

    name: str
    kind: type
    meaning: str
    variable: str | None = None
    """The environment variable, which wins over every file."""
    choices: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    harmless: bool = False
    """Whether it counts in a project's file that is not trusted."""


SETTINGS = (
    Setting(
        name="store", kind=str, variable="MAM_STORE",
        meaning="The store, when neither a flag nor MAM_STORE names one; absolute, or beginning with ~.",
    ),
    Setting(
        name="default_agent", kind=str, variable="MAM_DEFAULT_AGENT",
        meaning="The agent of a job registered without --agent.",
    ),
    Setting(
        name="require_attempt", kind=bool, variable="MAM_REQUIRE_ATTEMPT", harmless=True,
        meaning="Whether a write to a running job must name its attempt.",
    ),
    Setting(
        name="lock_wait_seconds", kind=float, variable="MAM_LOCK_WAIT_SECONDS", limits=(0, 3600), harmless=True,
        meaning="How long to wait for a store that another process has locked.",
    ),
    Setting(
        name="max_depth", kind=int, limits=(0, 100),
        meaning="How many levels of jobs may register jobs; 0 forbids it.",
    ),
    Setting(
        name="on_idle", kind=str, variable="MAM_ON_IDLE", choices=("show", "stop"), harmless=True,
        meaning="What a worker does about a quiet agent: `show` it, or `stop` it.",
    ),
    Setting(
        name="on_limit", kind=str, variable="MAM_ON_LIMIT", choices=("wait", "ask", "fail"), harmless=True,
        meaning="What a worker does at an agent's usage limit: `wait` for its end and continue, `ask` a person (if the "
        "job may ask), or `fail` the job.",
    ),
    Setting(
        name="retention_days", kind=float, variable="MAM_RETENTION_DAYS", limits=(0, 36500),
        meaning="After how many days `mam prune` archives ended jobs, and no longer waits for a silent consumer of the "
        "journal.",
    ),
    Setting(
        name="agent_prefix", kind=str, variable="MAM_AGENT_PREFIX", choices=("MAM", "HOUMAO", ""),
        meaning="The prefix of the names of live sessions.",
    ),
    Setting(
        name="workdirs", kind=dict,
        meaning="Maps directories of other hosts to this one: the prefix of a path there, and its path here.",
    ),
    Setting(
        name="commands", kind=dict,
        meaning="Your own agents: one table `[commands.NAME]` for each.",
    ),
    Setting(
        name="agents", kind=dict,
        meaning="How coding agents are started: one table `[agents.NAME]` for each.",
    ),
    # Not harmless: a wrong price in a repository would silently make every sum of costs wrong.
    Setting(
        name="prices", kind=dict,
        meaning="What tokens cost: one table `[prices.NAME]` for each agent that does not report costs.",
    ),
    Setting(
        name="children", kind=dict,
        meaning="What jobs may grant to the jobs that they register, beyond their own rights.",
    ),
    Setting(
        name="questions", kind=dict,
        meaning="Whether jobs may ask a person, and how many of a worker's jobs may wait for an answer.",
    ),
    Setting(
        name="rules", kind=list,
        meaning="What agents may do without a person, or never: a table `[[rules]]` for each (`mam rules`). The first "
        "that matches decides. If one of a project matches too, the stricter counts. No rule of a project allows "
        "anything.",
    ),
    Setting(
        name="broker", kind=dict,
        meaning="Where events are sent. Taken whole from one file, so that no password goes to another file's host.",
    ),
    Setting(
        name="inbox", kind=dict,
        meaning="How the inbox reads prompt files; docs/inbox.md describes the keys.",
    ),
    Setting(
        name="queue", kind=dict,
        meaning="The older queue's settings for the inbox: `jobs_root`, `failure_archive`, `max_retries`, `keep_days`.",
    ),
    Setting(
        name="repos", kind=dict,
        meaning='Where the repositories of jobs are: `"owner/repo"` and a local path or an address that git knows.',
    ),
    Setting(
        name="output", kind=dict,
        meaning="What a worker stores of the output of its jobs, so that other hosts can read it.",
    ),
    Setting(name="push", kind=dict, meaning="To which push services `mam serve` sends notifications."),
)  # fmt: skip
"""Every key. config/tables.py and config/inbox.py describe the tables."""

KINDS = {str: "a text", bool: "true or false", float: "a number", int: "a whole number", dict: "a table",
         list: "a list"}  # fmt: skip
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_TABLES = ("workdirs", "commands", "agents", "prices", "repos", "children", "output")


def load_config() -> Config:
    """The effective settings. MAM_STORE is not among them: `locate` reads it and reports why it wins."""
    from mam.config.project import project_values

    user, project = user_values(), project_values()
    merged = {**project, **user, **_from_environment()}
    for table in _TABLES:
        if table in project and table in user:
            merged[table] = {**project[table], **user[table]}
    if "rules" in project and "rules" in user:
        merged["rules"] = [*project["rules"], *user["rules"]]
    return Config(**merged)


def config_file() -> str:
    named = os.environ.get("MAM_CONFIG")
    if named:
        return os.path.abspath(named)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "mam", "config.toml")


def user_values() -> Values:
    """The values of the user's file."""
    file = config_file()
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("MAM_CONFIG"):
            raise BadConfig(file=file, problem="MAM_CONFIG names this file, but there is none") from None
        return {}
    except OSError as error:
        raise BadConfig(file=file, problem=error.strerror) from None
    from mam.config.file import read_values

    key = [file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    return read_values("config.json", key, file, lambda: _read_file(file))


def _read_file(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise BadConfig(file=file, problem=error.strerror) from None


def _from_environment() -> Values:
    values: Values = {}
    for setting in SETTINGS:
        text = environment_text(setting)
        if text is not None and setting.name != "store":
            values[setting.name] = value_from_text(setting, text, str(setting.variable))
    return values


def environment_text(setting: Setting) -> str | None:
    """An empty variable counts as unset, unless the empty text is one of the choices."""
    text = None if setting.variable is None else os.environ.get(setting.variable)
    return text if text or (text is not None and "" in setting.choices) else None


def value_from_text(setting: Setting, text: str, by: str) -> Any:
    """Parses a value from the environment or the command line; `by` names its source in an error."""
    parse: dict[type, Callable[[str], Any]] = {bool: _parse_bool, float: _parse_number, int: int}
    try:
        value = parse.get(setting.kind, str)(text)
    except (ValueError, KeyError):
        value = None
    problem = problem_with(setting, value)
    if problem is not None:
        raise BadInput(why=f"{by} {problem}")
    return value


def problem_with(setting: Setting, value: object) -> str | None:
    """`must be …` for an invalid value, else None."""
    kinds = (int, float) if setting.kind is float else (setting.kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and setting.kind is not bool):
        return f"must be {KINDS[setting.kind]}{_range_text(setting)}"
    if setting.limits is not None and not setting.limits[0] <= value <= setting.limits[1]:  # type: ignore[operator]
        return f"must be {KINDS[setting.kind]}{_range_text(setting)}"
    if setting.choices and value not in setting.choices:
        return "must be " + " or ".join(f'"{choice}"' for choice in setting.choices)
    return None


def _range_text(setting: Setting) -> str:
    return "" if setting.limits is None else f" between {setting.limits[0]:g} and {setting.limits[1]:g}"


def _parse_bool(text: str) -> bool:
    return _WORDS[text.lower()]


def _parse_number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() and text.strip().isdigit() else number

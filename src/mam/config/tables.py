"""Describes and checks the settings tables: workdirs, commands, prices, broker, children and output."""

from __future__ import annotations

from mam.config.file import check_names, check_table
from mam.config.settings import Setting
from mam.errors import BadConfig, BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PROMPT_WAYS = ("argument", "stdin", "file")
SUCCESS_RULES = ("exit", "said", "artifacts")

COMMAND = (
    Setting(
        name="argv", kind=list,
        meaning="The program and its arguments. `{prompt}` is the job's prompt; `{brief}` is the brief "
        '(`mam explain --brief`): its text, or with `prompt = "file"` the path of a file with it; `{job_id}` and '
        "`{workdir}` are the id and the directory of the job.",
    ),
    Setting(
        name="prompt", kind=str, choices=PROMPT_WAYS,
        meaning="How the agent gets the brief: as an `argument` (the default; the last one, if `argv` lacks it), on "
        "`stdin`, or in a `file`.",
    ),
    Setting(
        name="success", kind=str, choices=SUCCESS_RULES,
        meaning="What counts as success, before artifacts and validation are checked: `exit` code 0 (the default), "
        "only what the agent `said` with `mam complete`, or the `artifacts` alone.",
    ),
    Setting(name="env", kind=dict, meaning="Variables that are added to its environment."),
    Setting(name="retry_codes", kind=list, meaning="Exit codes that are retried."),
)  # fmt: skip
"""The keys of a table `[commands.NAME]`."""

BROKER = (
    Setting(name="host", kind=str, variable="MQTT_BROKER", meaning="Its name or address, also as host:port."),
    Setting(name="port", kind=int, variable="MQTT_PORT", limits=(1, 65535), meaning="1883, or 8883 with TLS."),
    Setting(name="tls", kind=bool, variable="MQTT_TLS", meaning="Whether to connect with TLS."),
    Setting(name="username", kind=str, variable="MQTT_USERNAME", meaning="The user name for the login."),
    Setting(
        name="password_file", kind=str,
        meaning="A file with the password that only you can read (0600); MQTT_PASSWORD wins over it.",
    ),
    Setting(name="ca_certs", kind=str, variable="MQTT_CA_CERTS", meaning="The CA certificates that are trusted."),
    Setting(name="certfile", kind=str, variable="MQTT_CERTFILE", meaning="The client certificate, if required."),
    Setting(name="keyfile", kind=str, variable="MQTT_KEYFILE", meaning="The key of that certificate."),
    Setting(
        name="client_id_prefix", kind=str, variable="MQTT_CLIENT_ID_PREFIX",
        meaning="The prefix of mam's client ids; `mam` if unset.",
    ),
    Setting(
        name="insecure", kind=bool, variable="MAM_INSECURE_BROKER",
        meaning="Whether a broker on another host is allowed without TLS.",
    ),
)  # fmt: skip
"""The keys of the table `[broker]`. The password has its own file, because settings are copied into a cache."""
OUTPUT = (
    Setting(
        name="upload", kind=str, choices=("none", "conversation", "all"),
        meaning="What a worker copies into the store: the output of coding agents (`conversation`), or also that of "
        "other agents, diffs and artifacts (`all`, the default). Known secrets are masked.",
    ),
    Setting(
        name="limit_mib", kind=float, limits=(0, 1024),
        meaning="How many MiB of the beginning and of the end of an output, and of each file, the store keeps; 4 if "
        "unset.",
    ),
    Setting(
        name="keep_days", kind=float, limits=(0, 36500),
        meaning="After how many days workers and `mam prune` remove them; 14 if unset.",
    ),
)  # fmt: skip
"""The keys of the table `[output]`."""
CHILDREN = (
    Setting(
        name="agents", kind=list,
        meaning="Agents that every job may register children for; else its own agent and `human`, and any agent if it "
        "is a `shell` job or has `full` permissions.",
    ),
    Setting(
        name="labels", kind=list,
        meaning="Labels that every job may give to its children; else the name of the agent and the job's own label.",
    ),
    Setting(
        name="worktrees", kind=bool,
        meaning="Whether every job may give its children worktrees; else only a `shell` job or one with `full` "
        "permissions.",
    ),
    Setting(
        name="validation", kind=str,
        meaning="A script that checks the outcome of every child, trusted as it is when the worker begins.",
    ),
)  # fmt: skip
"""The keys of the table `[children]`."""
QUESTIONS = (
    Setting(
        name="ask", kind=bool,
        meaning="Whether jobs registered without --ask or --no-ask may ask a person; true if unset, false if the "
        "variable CI is set.",
    ),
    Setting(
        name="parked", kind=int, limits=(0, 1000),
        meaning="How many jobs of a worker may wait for an answer without occupying one of its places; 4 if unset.",
    ),
    Setting(
        name="mcp_permission", kind=bool,
        meaning="Whether the user of an MCP client may also answer permissions in its forms; false if unset.",
    ),
    Setting(
        name="deadline_seconds", kind=float, limits=(1, 30 * 86400),
        meaning="After how many seconds a permission that no one answered is denied; 3600 if unset, and no deadline in "
        "a live session.",
    ),
)  # fmt: skip
"""The keys of the table `[questions]`."""
PUSH = (
    Setting(
        name="private",
        kind=bool,
        meaning="Whether notifications may also go to push services with private addresses, and without TLS to this "
        "host; false if unset.",
    ),
)
"""The keys of the table `[push]`."""
_PRICE_LIMITS = (0, 100_000)
_PRICE_EXAMPLE = "{input = 1.25, output = 10}"

PRICE = (
    Setting(
        name="input", kind=float, limits=_PRICE_LIMITS,
        meaning="US dollars for a million input tokens that were not cached.",
    ),
    Setting(
        name="cached", kind=float, limits=_PRICE_LIMITS,
        meaning="The same for cached input tokens; as `input` if unset.",
    ),
    Setting(
        name="output", kind=float, limits=_PRICE_LIMITS,
        meaning="The same for output tokens, including reasoning.",
    ),
)  # fmt: skip
"""The keys of a table `[prices.NAME]`."""
AGENT = (
    Setting(name="model", kind=str, meaning="The model of jobs that name none with `--model`."),
    Setting(name="args", kind=list, meaning="Arguments that are added to its command line."),
    Setting(name="env", kind=dict, meaning="Variables that are added to its environment."),
)
"""The keys of a table `[agents.NAME]`."""
TABLES = {"broker": BROKER, "children": CHILDREN, "questions": QUESTIONS, "output": OUTPUT, "push": PUSH}
"""The tables with fixed names, for `mam config`, the reference and the checks."""
BUILT_IN = ("shell", "human")
"""Agents that no user can redefine."""


def check_workdirs(table: dict[str, object], file: str) -> None:
    for there, here in table.items():
        if not there.startswith("/") or ".." in there.split("/"):
            raise BadConfig(
                file=file, problem=f"workdirs: {there!a} must be an absolute path, as it is on the other host"
            )
        if not isinstance(here, str) or not here.startswith(("/", "~")) or "\0" in here:
            raise BadConfig(file=file, problem=f"workdirs: the place of {there!a} must be an absolute path")


def check_broker(table: dict[str, object], file: str) -> None:
    check_table("broker", BROKER, table, file)
    for name in ("password_file", "ca_certs", "certfile", "keyfile"):
        if not str(table.get(name, "/")).startswith(("/", "~")):
            raise BadConfig(file=file, problem=f"broker: {name} must be an absolute path")


def check_children(table: dict[str, object], file: str) -> None:
    check_table("children", CHILDREN, table, file)
    for name in ("agents", "labels"):
        words = table.get(name, [])
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise BadConfig(file=file, problem=f"children: {name} must be a list of names")
    if not str(table.get("validation", "/")).startswith(("/", "~")):
        raise BadConfig(file=file, problem="children: validation must be an absolute path")


def check_rules(rules: list[object], file: str) -> None:
    """Every `[[rules]]`."""
    from mam.jobs.rules import rule_from_fields

    for number, fields in enumerate(rules, 1):
        try:
            rule_from_fields(fields)
        except BadInput as bad:
            raise BadConfig(file=file, problem=f"rules: rule {number}: {bad.facts['why']}") from None


def is_agent_name(name: str) -> bool:
    return name.replace("-", "").replace("_", "").replace(".", "").isalnum() and name.isascii() and len(name) <= 64


def check_command(name: str, table: object, file: str) -> None:
    """One `[commands.NAME]`."""
    if not is_agent_name(name):
        raise BadConfig(file=file, problem=f"commands: {name[:80]!a} is not a name: letters, digits, . _ and -")
    if name in BUILT_IN:
        raise BadConfig(file=file, problem=f"commands: {name} is built in; choose another name")
    if not isinstance(table, dict):
        raise BadConfig(file=file, problem=f"commands.{name} must be a table")
    check_names(table, [setting.name for setting in COMMAND], f"a setting of commands.{name}", file)
    _Command(name, file).check(table)


def check_prices(tables: dict[str, object], file: str) -> None:
    for agent, table in tables.items():
        if not is_agent_name(agent):
            raise BadConfig(file=file, problem=f"prices: {agent[:80]!a} is not a name: letters, digits, . _ and -")
        name = f"prices.{agent}"
        if not isinstance(table, dict):
            raise BadConfig(file=file, problem=f"{name} must be a table, such as {_PRICE_EXAMPLE}")
        check_table(name, PRICE, table, file)
        for key in ("input", "output"):
            if key not in table:  # with one of them missing, the cost would silently be too low
                raise BadConfig(file=file, problem=f"{name}: {key} is missing; give both, as in {_PRICE_EXAMPLE}")


def check_agents(tables: dict[str, object], file: str) -> None:
    from mam.agent_table import CODING_AGENTS
    from mam.jobs.input_rules import check_model

    check_names(tables, CODING_AGENTS, "a coding agent", file)
    for agent, table in tables.items():
        name = f"agents.{agent}"
        if not isinstance(table, dict):
            raise BadConfig(file=file, problem=f'{name} must be a table, such as {{model = "M"}}')
        check_table(name, AGENT, table, file)
        try:
            check_model(table.get("model", "M"))
        except BadInput as bad:
            raise BadConfig(file=file, problem=f"{name}: {bad.facts['why']}") from None
        if not all(isinstance(word, str) and word and "\0" not in word for word in table.get("args", [])):
            raise BadConfig(file=file, problem=f"{name}: args must be a list of texts")
        check_env(name, table.get("env", {}), file)


def check_env(name: str, env: object, file: str) -> None:
    """The variables that a table adds to the environment of an agent."""
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        raise BadConfig(file=file, problem=f"{name}: env must be a table of texts")
    for variable, value in env.items():
        if not variable or "=" in variable or "\0" in variable + value:
            raise BadConfig(file=file, problem=f"{name}: env: {variable!a} cannot be a variable")
        if variable.startswith("MAM_"):
            raise BadConfig(file=file, problem=f"{name}: env: {variable} is for mam itself to set")


class _Command:
    def __init__(self, name: str, file: str) -> None:
        self._name = name
        self._file = file

    def check(self, table: dict[str, object]) -> None:
        self._check_argv(table.get("argv"))
        for key, choices in (("prompt", PROMPT_WAYS), ("success", SUCCESS_RULES)):
            if table.get(key, choices[0]) not in choices:
                self._refuse(f"{key} must be one of {', '.join(choices)}")
        codes = table.get("retry_codes", [])
        if not isinstance(codes, list) or not all(type(code) is int and 1 <= code <= 255 for code in codes):
            self._refuse("retry_codes must be a list of exit codes from 1 to 255")
        check_env(f"commands.{self._name}", table.get("env", {}), self._file)
        if table.get("prompt") == "stdin" and any("{brief}" in word for word in table["argv"]):  # type: ignore[attr-defined]
            self._refuse('argv has {brief}, which comes by stdin with prompt = "stdin"')

    def _check_argv(self, argv: object) -> None:
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            self._refuse("argv must be a list of texts: the program and its arguments")
        if any("\0" in word for word in argv):
            self._refuse("argv has a NUL character")
        program = argv[0]
        # A relative path would let the repository supply the program.
        if not program or "{" in program or ("/" in program and not program.startswith(("/", "~/"))):
            self._refuse("the first word of argv must be a program on PATH, or an absolute path")

    def _refuse(self, problem: str) -> NoReturn:
        raise BadConfig(file=self._file, problem=f"commands.{self._name}: {problem}")

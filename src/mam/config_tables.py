"""The tables of a file of settings: directories of other hosts, the user's own agents, and the broker."""

from __future__ import annotations

from mam.config_file import check_names
from mam.errors import BadConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

COMMAND_KEYS = ("argv", "prompt", "success", "env", "retry_codes")
PROMPT_WAYS = ("argument", "stdin", "file")
SUCCESS_RULES = ("exit", "said", "artifacts")
BROKER_KEYS = {
    "host": str, "port": int, "tls": bool, "username": str, "password_file": str, "ca_certs": str, "certfile": str,
    "keyfile": str, "client_id_prefix": str, "insecure": bool,
}  # fmt: skip
"""A password has a file of its own, since settings are copied into a cache."""
_KIND_NAMES = {str: "a text", int: "a number", bool: "true or false"}
BUILT_IN = ("shell", "human")
"""Agents whose meaning must be the same for everybody."""


def check_workdirs(table: dict[str, object], file: str) -> None:
    for there, here in table.items():
        if not there.startswith("/") or ".." in there.split("/"):
            raise BadConfig(
                file=file, problem=f"workdirs: {there!a} must be an absolute path, as it is on the other host"
            )
        if not isinstance(here, str) or not here.startswith(("/", "~")) or "\0" in here:
            raise BadConfig(file=file, problem=f"workdirs: the place of {there!a} must be an absolute path")


def check_broker(table: dict[str, object], file: str) -> None:
    check_names(table, BROKER_KEYS, "a setting of broker", file)
    for name, value in table.items():
        if type(value) is not BROKER_KEYS[name]:
            raise BadConfig(file=file, problem=f"broker: {name} must be {_KIND_NAMES[BROKER_KEYS[name]]}")
    for name in ("password_file", "ca_certs", "certfile", "keyfile"):
        if not str(table.get(name, "/")).startswith(("/", "~")):
            raise BadConfig(file=file, problem=f"broker: {name} must be an absolute path")


def check_command(name: str, table: object, file: str) -> None:
    """One `[commands.NAME]`."""
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or not name.isascii() or len(name) > 64:
        raise BadConfig(file=file, problem=f"commands: {name[:80]!a} is not a name: letters, digits, . _ and -")
    if name in BUILT_IN:
        raise BadConfig(file=file, problem=f"commands: {name} is built in; choose another name")
    if not isinstance(table, dict):
        raise BadConfig(file=file, problem=f"commands.{name} must be a table")
    check_names(table, COMMAND_KEYS, f"a setting of commands.{name}", file)
    _Command(name, file).check(table)


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
        self._check_env(table.get("env", {}))
        if table.get("prompt") == "stdin" and any("{brief}" in word for word in table["argv"]):  # type: ignore[attr-defined]
            self._refuse('argv has {brief}, which comes by stdin with prompt = "stdin"')

    def _check_argv(self, argv: object) -> None:
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            self._refuse("argv must be a list of texts: the program and its arguments")
        if any("\0" in word for word in argv):
            self._refuse("argv has a NUL character")
        program = argv[0]
        # A path that begins where the job runs would let the repository bring the program.
        if not program or "{" in program or ("/" in program and not program.startswith(("/", "~/"))):
            self._refuse("the first word of argv must be a program on PATH, or an absolute path")

    def _check_env(self, env: object) -> None:
        if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
            self._refuse("env must be a table of texts")
        for variable, value in env.items():
            if not variable or "=" in variable or "\0" in variable + value:
                self._refuse(f"env: {variable!a} cannot be a variable")
            if variable.startswith("MAM_"):
                self._refuse(f"env: {variable} is for mam itself to set")

    def _refuse(self, problem: str) -> NoReturn:
        raise BadConfig(file=self._file, problem=f"commands.{self._name}: {problem}")

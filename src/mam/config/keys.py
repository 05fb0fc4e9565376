"""Every setting by its full name, with its current value and the source of that value."""

from __future__ import annotations

import os

from mam.config.project import find_project_file, project_values
from mam.config.settings import SETTINGS, Config, Setting, config_file, environment_text, load_config, user_values
from mam.config.tables import AGENT, COMMAND, PRICE, TABLES
from mam.errors import BadInput
from mam.machine.environment import has_password, names_a_secret, without_password
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.config.settings import Values

HIDDEN = "********"
DEFAULT, ENVIRONMENT, USER, PROJECT, UNTRUSTED = "default", "environment", "user", "project", "untrusted"
_VARIABLE = Setting(name="variable", kind=str, meaning="A variable that is added to the agent's environment.")
_PRICES = Setting(name="prices", kind=dict, meaning="What the tokens of this agent cost.")
_WORKDIR = Setting(name="workdir", kind=str, meaning="Where this directory of another host is on this one.")


class Key(Frozen):
    """A setting and its path in a settings file."""

    path: tuple[str, ...]
    setting: Setting

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def holds_secret(self) -> bool:
        return self.setting is _VARIABLE and names_a_secret(self.path[-1])


class SettingValue(Frozen):
    """The effective value of a setting, without secrets."""

    key: Key
    value: Any
    default: Any
    source: str
    file: str | None = None
    """The file that sets it; for `untrusted`, the file whose value is ignored."""


def find_key(name: str) -> Key:
    """The setting of that name; BadInput with a suggestion when there is none."""
    first, _, rest = name.partition(".")
    if first == "workdirs" and rest:
        return Key(path=(first, rest), setting=_WORKDIR)
    if first == "commands" and rest:
        return _command_key(name, rest.split("."))
    if first == "agents" and rest:
        return _variable_key(name, rest.split(".")) or _agent_key(name, rest.split("."), AGENT)
    if first == "prices" and rest:
        return _price_key(name, rest.split("."))
    for key in _fixed_keys():
        if name == key.name:
            return key
    if name == "broker.password":
        raise BadInput(
            why="a password is not a setting: write it to a file of mode 0600 and set broker.password_file to its path"
        )
    raise _unknown_setting(name)


def _unknown_setting(name: str) -> BadInput:
    hint = _nearest(name, [key.name for key in _fixed_keys()])
    return BadInput(why=f"{name[:80]!a} is not a setting{hint}; `mam config list` shows them")


def _fixed_keys() -> list[Key]:
    """Every setting with a fixed name."""
    keys = [Key(path=(setting.name,), setting=setting) for setting in SETTINGS]
    return keys + [Key(path=(table, one.name), setting=one) for table, settings in TABLES.items() for one in settings]


def _nearest(word: str, choices: list[str]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(word, choices, n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


def _price_key(name: str, parts: list[str]) -> Key:
    """`NAME`, because prices are set together, or `NAME.input`."""
    if len(parts) == 1:
        return Key(path=("prices", parts[0]), setting=_PRICES)
    return _agent_key(name, parts, PRICE)


def _command_key(name: str, parts: list[str]) -> Key:
    """`NAME.argv`, `NAME.env.VARIABLE`."""
    return _variable_key(name, parts) or _agent_key(name, parts, COMMAND)


def _variable_key(name: str, parts: list[str]) -> Key | None:
    if len(parts) < 3 or parts[-2] != "env":
        return None
    return Key(path=(name.partition(".")[0], ".".join(parts[:-2]), "env", parts[-1]), setting=_VARIABLE)


def _agent_key(name: str, parts: list[str], settings: tuple[Setting, ...]) -> Key:
    """A setting in the table of an agent, whose name may contain dots."""
    table = name.partition(".")[0]
    for setting in settings:
        if len(parts) >= 2 and parts[-1] == setting.name:
            return Key(path=(table, ".".join(parts[:-1]), setting.name), setting=setting)
    keys = [setting.name for setting in settings]
    hint = _nearest(parts[-1], keys)
    raise BadInput(why=f"{name[:80]!a} is not a setting{hint}; there are {table}.NAME.{', '.join(keys)}")


def current(key: Key) -> SettingValue:
    return next(one for one in _resolve_values([key]))


def all_current() -> list[SettingValue]:
    """Every setting with a single value, and the values in the tables."""
    keys = [key for key in _fixed_keys() if key.setting.kind is not dict]
    config = load_config()
    keys += [Key(path=("workdirs", there), setting=_WORKDIR) for there in config.workdirs]
    keys += _keys_in_tables("commands", config.commands, COMMAND)
    keys += _keys_in_tables("agents", config.agents, AGENT)
    keys += _keys_in_tables("prices", config.prices, PRICE)
    return list(_resolve_values(keys))


def _keys_in_tables(name: str, tables: dict[str, Values], settings: tuple[Setting, ...]) -> list[Key]:
    return [
        Key(path=(name, agent, setting.name), setting=setting)
        for agent, table in tables.items()
        for setting in settings
        if setting.name in table
    ]


def _resolve_values(keys: list[Key]) -> Iterator[SettingValue]:
    load_config()  # raises the errors of the files before any value is shown
    project = find_project_file()
    said, counted, user = (project.values if project else {}), project_values(), user_values()
    for key in keys:
        found = _resolve_value(key, user, counted, said, project.path if project else None)
        yield found.replace(value=_without_secrets(key, found.value))


def _resolve_value(key: Key, user: Values, counted: Values, said: Values, project: str | None) -> SettingValue:
    default = Config.field_defaults.get(key.name)
    plain = SettingValue(key=key, value=default, default=default, source=DEFAULT)
    text = environment_text(key.setting)
    if text is not None:
        from mam.config.settings import value_from_text

        return plain.replace(value=value_from_text(key.setting, text, str(key.setting.variable)), source=ENVIRONMENT)
    if key.path[0] == "broker" and os.environ.get("MQTT_BROKER"):
        return plain  # with MQTT_BROKER, all settings of the broker come from the environment
    if _value_at(user, key.path[: 1 if key.path[0] == "broker" else 2]) is not None:
        counted = said = {}  # the user's table replaces the project's table completely
    for values, source, file in ((user, USER, config_file()), (counted, PROJECT, project)):
        value = _value_at(values, key.path)
        if value is not None:
            return plain.replace(value=value, source=source, file=file)
    if _value_at(said, key.path) is not None and _value_at(counted, key.path) is None:
        return plain.replace(source=UNTRUSTED, file=project)
    return plain


def _value_at(values: Values, path: tuple[str, ...]) -> Any:
    found: Any = values
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _without_secrets(key: Key, value: Any) -> Any:
    if key.path == ("store",) and isinstance(value, str) and has_password(value):
        return without_password(value)
    if key.holds_secret:
        return HIDDEN
    if key.path[-1] == "env" and isinstance(value, dict):
        return {name: HIDDEN if names_a_secret(name) else text for name, text in value.items()}
    return value

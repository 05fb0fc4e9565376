"""Changes of an agent's settings file: some keys get values, and later their earlier values back. Pure."""

from __future__ import annotations

import json

from mam.errors import Refused
from mam.util.frozen import Frozen
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    Keys = tuple[str, ...]
    Table = MutableMapping[str, Any]

JSON, TOML, TEXT = "json", "toml", "text"


class Wanted(Frozen):
    """What a file is to contain: a whole text, or values at some keys of its JSON or TOML."""

    path: str
    kind: str
    text: str = ""
    values: tuple[tuple[Keys, Any], ...] = ()
    items: tuple[tuple[Keys, Any], ...] = ()
    """Each is one more item of the list at these keys."""


def applied(wanted: Wanted, before: str | None) -> str:
    """The text of the file after the change."""
    if wanted.kind == TEXT:
        return wanted.text
    return _edited(wanted.path, wanted.kind, before, lambda table: _set_all(table, wanted))


def reverted(wanted: Wanted, before: str | None, now: str) -> str | None:
    """The text without the change, where the user has changed the file meanwhile; None if nothing is left of it. A
    value that the user has changed stays."""
    earlier = {} if before is None else _plain(wanted.path, wanted.kind, before)

    def undo(table: Table) -> None:
        for keys, value in wanted.values:
            if _get(_plain_table(table), keys) == value:
                _restore(table, keys, earlier)
        for keys, item in wanted.items:
            _remove_item(table, keys, item, earlier)

    text = _edited(wanted.path, wanted.kind, now, undo)
    return None if before is None and not _plain(wanted.path, wanted.kind, text) else text


def is_present(wanted: Wanted, now: str | None) -> bool:
    """Whether the file still contains it."""
    if now is None:
        return False
    if wanted.kind == TEXT:
        return now == wanted.text
    try:
        table = _plain(wanted.path, wanted.kind, now)
    except Refused:
        return False
    has_items = all(item in (_get(table, keys) or ()) for keys, item in wanted.items)
    return has_items and all(_get(table, keys) == value for keys, value in wanted.values)


def _edited(path: str, kind: str, text: str | None, edit: Any) -> str:
    if kind == TOML:
        import tomlkit

        document = tomlkit.parse(_checked(path, kind, text or ""))
        edit(document)
        return tomlkit.dumps(document)
    table = _plain(path, kind, text or "{}")
    edit(table)
    newline = "\n" if text is None or text.endswith("\n") else ""
    return json.dumps(table, indent=_indent(text or ""), ensure_ascii=False) + newline


def _indent(text: str) -> int | str:
    """As in the file, so that only the changed lines differ."""
    for line in text.splitlines()[1:]:
        blank = line[: len(line) - len(line.lstrip())]
        if blank:
            return "\t" if blank.startswith("\t") else len(blank)
    return 2


def _plain(path: str, kind: str, text: str) -> dict[str, Any]:
    _checked(path, kind, text)
    if kind == TOML:
        import tomllib

        return tomllib.loads(text)
    found: dict[str, Any] = safe_json(text)
    return found


def _checked(path: str, kind: str, text: str) -> str:
    try:
        if kind == TOML:
            import tomllib

            tomllib.loads(text)
        elif not isinstance(safe_json(text), dict):
            raise ValueError
    except (ValueError, RecursionError):  # tomllib follows any nesting
        raise Refused(why=f"{path} is not {kind.upper()} that mam can edit; mam left it as it is.") from None
    return text


def _plain_table(table: Any) -> Any:
    return table.unwrap() if hasattr(table, "unwrap") else table


def _get(table: Any, keys: Keys) -> Any:
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            return None
        table = table[key]
    return table


def _set_all(table: Table, wanted: Wanted) -> None:
    for keys, item in wanted.items:
        held = _get(table, keys)
        if not isinstance(held, list):
            _set(table, keys, [item])
        elif item not in _plain_table(held):
            held.append(item)
    for keys, value in wanted.values:
        _set(table, keys, value)


def _remove_item(table: Table, keys: Keys, item: Any, earlier: dict[str, Any]) -> None:
    held = _get(table, keys)
    if not isinstance(held, list) or item not in _plain_table(held) or item in (_get(earlier, keys) or ()):
        return
    del held[_plain_table(held).index(item)]
    if not held:
        _restore(table, keys, earlier)


def _set(table: Table, keys: Keys, value: Any) -> None:
    for key in keys[:-1]:
        if not isinstance(table.get(key), dict):
            table[key] = {}
        table = table[key]
    table[keys[-1]] = value


def _restore(table: Table, keys: Keys, earlier: dict[str, Any]) -> None:
    """Gives one key its earlier value back, and removes the tables that were made for it."""
    value = _get(earlier, keys)
    if value is not None:
        _set(table, keys, value)
        return
    inner = table
    for key in keys[:-1]:
        inner = inner[key]
    del inner[keys[-1]]
    if len(keys) > 1 and not inner and _get(earlier, keys[:-1]) is None:
        _restore(table, keys[:-1], earlier)

"""Changes a settings file: comments and order are preserved, and an invalid file is never written."""

from __future__ import annotations

import os

from mam.config.file import check_values, parse_toml
from mam.errors import BadConfig, BadInput
from mam.stores.private_files import replace_bytes
from mam.util.state_dir import make_private, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LOCK = "config.lock"


def set_value(file: str, path: tuple[str, ...], value: Any) -> None:
    import tomlkit

    def do(document: Any) -> bool:
        table = document
        for name in path[:-1]:
            if name not in table:
                table[name] = tomlkit.table(is_super_table=name in ("commands", "agents", "prices"))
            table = table[name]
        table[path[-1]] = value
        return True

    _change(file, do)


def unset_value(file: str, path: tuple[str, ...]) -> bool:
    """Removes a value, and the table if it becomes empty. Returns whether the value existed."""

    def do(document: Any) -> bool:
        tables = [document]
        for name in path[:-1]:
            if name not in tables[-1]:
                return False
            tables.append(tables[-1][name])
        if path[-1] not in tables[-1]:
            return False
        for table, name in zip(reversed(tables), reversed(path), strict=True):
            del table[name]
            if table:
                break
        return True

    return _change(file, do)


def replace_text(file: str, text: str) -> None:
    """Replaces the file atomically and durably."""
    check_values(parse_toml(text.encode(), file), file)
    file = os.path.realpath(file)  # follow a link, so that the linked file is changed
    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    mode = os.stat(file).st_mode & 0o777 if os.path.exists(file) else 0o600
    replace_bytes(file, text.encode(), mode)


def read_text(file: str) -> str:
    """The content; empty when there is no file."""
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            return opened.read()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise BadConfig(file=file, problem="not valid TOML: it is not UTF-8") from None


def _change(file: str, do: Callable[[Any], bool]) -> bool:
    """Under a lock, so that two concurrent changes both take effect."""
    import fcntl

    try:
        import tomlkit
    except ImportError:
        raise BadInput(why="changing settings needs tomlkit: pip install tomlkit; `mam config edit` does not") from None

    directory = make_private(state_directory())
    lock = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = read_text(file)
        parse_toml(text.encode(), file)
        document = tomlkit.parse(text)
        changed = do(document)
        if changed:
            replace_text(file, tomlkit.dumps(document))
        return changed
    finally:
        os.close(lock)


def add_to_list(file: str, name: str, value: dict[str, Any], *, at_start: bool) -> None:
    """Adds a table to an array of tables, such as `[[rules]]`."""
    import tomlkit

    def do(document: Any) -> bool:
        held = document.get(name)
        if held is None or not held:
            document.pop(name, None)
            held = document[name] = tomlkit.aot()
            held = document[name]
        table = tomlkit.item(value)
        held.insert(0 if at_start else len(held), table)
        return True

    _change(file, do)

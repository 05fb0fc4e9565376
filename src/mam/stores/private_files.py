"""Private directories of stores, and small files in them that are read and replaced as a whole."""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable
from mam.util.encoding import to_bytes, write_all
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_json_file(path: str) -> Any:
    """The content of a JSON file, None when there is none. A damaged file is moved aside."""
    try:
        with open(path, "rb") as file:
            return safe_json(file.read())
    except FileNotFoundError:
        return None
    except ValueError:
        os.replace(path, f"{path}.damaged")
        return None


def replace_json_file(path: str, value: object) -> None:
    replace_bytes(path, to_bytes(value))


def replace_bytes(path: str, data: bytes, mode: int = 0o600) -> None:
    """Durable when it returns; a reader sees the old content or the new."""
    temporary = f"{path}.{os.urandom(6).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        write_all(descriptor, data)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(path: str) -> bool:
    """Creates the directory and its missing parents, private to the user. Returns whether it created any."""
    if os.path.isdir(path):
        return False
    parent = os.path.dirname(os.path.abspath(path))
    make_directories(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if os.path.isdir(path):
            return False
        raise StoreUnavailable(store=path, problem="something that is not a directory is in its place") from None
    except OSError as error:
        raise StoreUnavailable(store=path, problem=f"cannot be made: {error.strerror}") from None
    sync_directory(parent)  # otherwise a power cut could remove the directory with everything in it
    return True

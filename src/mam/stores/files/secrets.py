"""What may not stand in a record: tokens and passwords that an old record carried, kept in `.store/secrets` (0600)."""

from __future__ import annotations

import json
import os

from mam.stores.files.journal import sync_directory
from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Secrets:
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, "secrets")

    def keep(self, job_id: str, secrets: dict[str, Any]) -> None:
        """Durable before the record that carried them is rewritten without."""
        everything = self._all()
        everything[job_id] = {**everything.get(job_id, {}), **secrets}
        temporary = f"{self._path}.{os.urandom(6).hex()}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            file.write(to_bytes(everything))
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, self._path)
        sync_directory(self._directory)

    def _all(self) -> dict[str, Any]:
        try:
            with open(self._path, "rb") as file:
                found = json.load(file)
        except FileNotFoundError:
            return {}
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        # Nobody can read it any more; it is put aside, so that what comes now is not lost with it.
        os.replace(self._path, f"{self._path}.damaged")
        return {}

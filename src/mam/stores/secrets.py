"""What may not stand in a record: tokens and passwords, in a file of their own (0600)."""

from __future__ import annotations

from mam.stores.beside import read_whole, replace_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Secrets:
    """Whoever writes holds the store's lock."""

    def __init__(self, path: str) -> None:
        self._path = path

    def keep(self, job_id: str, secrets: dict[str, Any]) -> None:
        """Durable before the record that carried them is rewritten without."""
        everything = self._all()
        replace_whole(self._path, {**everything, job_id: {**everything.get(job_id, {}), **secrets}})

    def of(self, job_id: str) -> dict[str, Any]:
        found = self._all().get(job_id)
        return found if isinstance(found, dict) else {}

    def _all(self) -> dict[str, Any]:
        found = read_whole(self._path)
        return found if isinstance(found, dict) else {}

"""The journal of a files store, frame by frame: whole, in order, and none missing."""

from __future__ import annotations

import os

from mam.doctor.finding import fine, note, wrong
from mam.stores.files.frames import unframe
from mam.stores.files.journal import ACTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient

RESTORE = "restore the store from a backup (docs/how-to.md), or keep it: the records are whole"


def look(patient: Patient) -> Iterator[Finding]:
    home = patient.home
    if home is None or not os.path.isdir(home):
        return
    names = [name for name in os.listdir(home) if name.startswith("journal-") and name.endswith(".log")]
    reader = _Reader()
    for name in [*sorted(names), ACTIVE]:
        path = os.path.join(home, name)
        if os.path.lexists(path):
            yield from reader.read(path, active=name == ACTIVE)
    patient.last_entry = reader.last
    if not reader.found:
        yield fine(f"the journal is whole: {reader.entries:,} entr{'y' if reader.entries == 1 else 'ies'}")


class _Reader:
    def __init__(self) -> None:
        self.entries = self.last = 0
        self.found = False
        self._next: int | None = None

    def read(self, path: str, *, active: bool) -> Iterator[Finding]:
        """Reads what others may be writing: the last line of the active segment may be on its way."""
        offset, torn = 0, None
        with open(path, "rb") as file:
            for line in file:
                if torn is not None:
                    yield self._damage(path, torn, "a frame is broken and others follow it")
                    torn = None
                payload = unframe(line)
                if payload is None:
                    torn = offset
                elif isinstance(payload, list):
                    yield from self._follow(path, offset, payload)
                offset += len(line)
        if torn is not None and active:
            self.found = True
            yield note(
                f"{path} ends in a frame that is not whole, at byte {torn:,}",
                "its act was never acknowledged; the next command puts it aside",
                "mam list",
            )
        elif torn is not None:
            yield self._damage(path, torn, "its last frame is not whole")

    def _follow(self, path: str, offset: int, entries: list[dict[str, int]]) -> Iterator[Finding]:
        first, last = entries[0]["number"], entries[-1]["number"]
        if self._next is not None and first > self._next:
            missing = (
                f"entry {self._next} is" if first == self._next + 1 else f"entries {self._next} to {first - 1} are"
            )
            yield self._damage(path, offset, f"{missing} missing before it")
        self.last, self._next = last, last + 1
        self.entries += len(entries)

    def _damage(self, path: str, offset: int, problem: str) -> Finding:
        self.found = True
        self._next = None  # what is missing behind it is no second damage
        return wrong(
            f"{path} is damaged at byte {offset:,}: {problem}",
            "history is lost, and acts behind it may not be carried out",
            RESTORE,
        )

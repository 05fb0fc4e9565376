"""The contract of a session directory. The files and the PostgreSQL implementation pass the same suite."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from mam.agents.acts import Act
    from mam.agents.lookup import Lookup
    from mam.agents.record import AgentRecord
    from mam.util.clock import Clock

    class Directory(Protocol):
        address: str
        """For messages; it contains no password."""
        opener: str
        """The address that opens it again. It may contain a password: never print it or put it on a command line."""
        clock: Clock
        """The clock that decides about leases."""

        def read(self, agent_id: str) -> Lookup:
            """The entry at this id. A missing or broken record is a result; only an unreadable directory raises."""

        def read_all(self) -> Iterator[Lookup]:
            """All entries in the order of their ids, also unreadable ones. Entries that are removed meanwhile are left
            out."""

        def change(self, agent_id: str, act: Act) -> AgentRecord | None:
            """Apply an act to one id atomically and return the stored record."""

        def leftovers(self) -> Iterator[Lookup]:
            """Entries that were set aside, or left by a killed process."""

        def discard(self, leftover: Lookup) -> None: ...

        def close(self) -> None: ...

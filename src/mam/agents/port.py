"""What every home of the directory promises. Two of them pass one suite: files, and PostgreSQL."""

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
        """For people; it holds no password."""
        opener: str
        """What opens it again. It may hold a password: never shown, and never on a command line."""
        clock: Clock
        """The one by which leases are judged here."""

        def read(self, agent_id: str) -> Lookup:
            """What stands at this id. Nothing is an answer too, and nothing raises but a home that cannot be read."""

        def read_all(self) -> Iterator[Lookup]:
            """All of them by id, also what cannot be read; what is removed meanwhile is simply not among them."""

        def change(self, agent_id: str, act: Act) -> AgentRecord | None:
            """One act at one id, and nobody else's between its look and its change. What stands there afterwards."""

        def leftovers(self) -> Iterator[Lookup]:
            """What was put aside, or left behind by somebody who was killed."""

        def discard(self, leftover: Lookup) -> None: ...

        def close(self) -> None: ...

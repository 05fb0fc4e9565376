"""The generations of sessions on a server: whoever looks at one keeps others from changing it meanwhile."""

from __future__ import annotations

from mam.stores.sql.sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.generation import Generations


class HeldSessions(Sessions):
    def _known(self, agent_id: str) -> Generations | None:
        self._tell("hold session", agent_id=agent_id)
        return super()._known(agent_id)

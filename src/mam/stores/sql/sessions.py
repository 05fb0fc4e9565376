"""Which generation of a session counts, as rows: the questions of the port's `announce`, for both databases."""

from __future__ import annotations

import json

from mam.errors import GenerationLost
from mam.jobs.generation import Generations, supersede

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.sql.blocking import RunQuery


class Sessions:
    def __init__(self, ask: RunQuery, tell: RunQuery | None = None) -> None:
        """Both run a named query of the transaction that is open; `tell` is for what answers nothing."""
        self._run_query = ask
        self._tell = tell or ask

    def announce(self, agent_id: str, generation_id: str) -> bool:
        """Whether that was news; GenerationLost when it was replaced before."""
        known = self._known(agent_id)
        new = supersede(known, agent_id, generation_id)
        if new is known:
            return False
        replaced = json.dumps(new.superseded)
        self._tell("announce", agent_id=agent_id, generation_id=new.current, superseded=replaced)
        return True

    def check(self, agent_id: str, generation_id: str) -> None:
        """That nobody has replaced it since it was announced."""
        known = self._known(agent_id)
        if known is None or known.current != generation_id:
            owner = "nobody" if known is None else known.current
            raise GenerationLost(agent=agent_id, owner=owner, generation=generation_id)

    def held_by(self, agent_id: str) -> list[str]:
        """The jobs that run for it, whatever its generation."""
        return [str(row[0]) for row in self._run_query("jobs held by session", agent_id=agent_id)]

    def _known(self, agent_id: str) -> Generations | None:
        rows = self._run_query("generation", agent_id=agent_id)
        return Generations(current=rows[0][0], superseded=tuple(json.loads(rows[0][1]))) if rows else None

"""A viewer: the one for whom a door acts, with the rights that it has."""

from __future__ import annotations

from mam.access.grant import EVERYTHING, Grant
from mam.errors import NotAllowed
from mam.util.frozen import Frozen

LOCAL_TOKEN = "local"  # noqa: S105 - a name
"""The token of the user who starts the server. It has no secret that anyone could send. It is the parent of the
log-ins that the server prints, and revoking it ends them."""


class Viewer(Frozen):
    """The holder of a token, of a browser's session that belongs to one, or the user at this host."""

    name: str
    """The name of the token; for the user at this host, user@host."""
    grant: Grant
    token: str | None = None
    """What jobs that it registers record, as NAME.DIGITS of the token; None for the user at this host."""
    session: str | None = None
    """The name of the browser's session, if it is one."""

    def may(self, scope: str) -> bool:
        return self.grant.has(scope)

    def need(self, scope: str, what: str) -> None:
        """NotAllowed unless the viewer has this scope. `what` completes “may not …”."""
        if not self.may(scope):
            raise NotAllowed(who=self.label, what=what, why=f": it needs the scope {scope}")

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"the token {self.name}" if self.token is not None else self.name


def local_viewer(name: str) -> Viewer:
    """The user at this host, who can do everything without a server too."""
    return Viewer(name=name, grant=EVERYTHING)

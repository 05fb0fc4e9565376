"""Whether the store and the server are well, and the tokens of the store."""

from __future__ import annotations

from mam import __version__
from mam.access.grant import ADMIN, READ
from mam.jobs.credential import TOKEN
from mam.serve.pages.moments import When, age
from mam.util.clock import iso_second
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.registry import AuthorizedRegistry
    from mam.serve.server import Server


class Check(Frozen):
    look: str
    name: str
    text: str


class TokenRow(Frozen):
    name: str
    scopes: str
    bounds: str
    made: When | None
    expires: When | None
    revoke: str


def health_page(registry: AuthorizedRegistry, server: Server) -> tuple[Check, ...]:
    registry.viewer.need(READ, "look at the health of the server")
    store, problems = registry.registry.store, registry.registry.store.problems()
    workers = [holder for holder in registry.holders() if holder.worker is not None]
    due = store.due_in()
    is_late = due is not None and due <= -60
    secure = server.settings.is_https
    return (
        Check(look="good", name="Store", text=one_line(store.address)),
        *(Check(look="bad", name="Left alone", text=one_line(f"{one.file}: {one.problem}")) for one in problems[:20]),
        Check(look="good" if workers else "bad", name="Workers",
              text=f"{len(workers)} live" if workers else "none; mam worker -s LABEL starts one"),
        Check(look="bad" if is_late else "good", name="Clock",
              text="a wait or a lease is overdue" if is_late else "nothing is overdue"),
        Check(look="good" if secure else "neutral", name="HTTPS",
              text="on" if secure else "off: browsers install a page and notify only over HTTPS or on this host"),
        Check(look="good", name="Version", text=f"mam {__version__}"),
    )  # fmt: skip


def tokens_page(registry: AuthorizedRegistry) -> tuple[TokenRow, ...]:
    registry.viewer.need(ADMIN, "list tokens")
    store = registry.registry.store
    now_ms = store.clock.now().wall_ms
    return tuple(
        TokenRow(
            name=one_line(one.name), scopes=", ".join(map(str, one.grant.get("scopes", ()))), bounds=_bounds(one.grant),
            made=age(iso_second(one.made_ms), now_ms),
            expires=None if one.expires_ms is None else age(iso_second(one.expires_ms), now_ms),
            revoke=f"mam token revoke {one_line(one.name)}",
        )
        for one in store.credentials(TOKEN)
    )  # fmt: skip


def _bounds(grant: dict[str, object]) -> str:
    parts = []
    for name in ("labels", "agents", "repos"):
        values = grant.get(name)
        if isinstance(values, list) and values:
            parts.append(f"{name} {', '.join(map(str, values))}")
    return one_line("; ".join([*parts, f"at most {grant.get('max_permissions', '?')}"]))

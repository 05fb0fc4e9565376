"""A grant: the scopes of a token, and the bounds of the jobs that it registers and claims. Pure.

read     the whole store
submit   registers jobs within the bounds; sees and changes the jobs that this token registered
work     claims jobs of its labels and reports on them, fenced by attempt and claim id
answer   lists and answers questions
admin    everything
"""

from __future__ import annotations

from mam.errors import BadInput
from mam.jobs import input_rules
from mam.jobs.record import CHOICES
from mam.jobs.rights import SHELL
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mam.jobs.record import Json

READ, SUBMIT, WORK, ANSWER, ADMIN = "read", "submit", "work", "answer", "admin"
SCOPES = (READ, SUBMIT, WORK, ANSWER, ADMIN)
PERMISSIONS = CHOICES["permissions"]
"""From the fewest to the most."""

_LISTS = ("scopes", "labels", "agents", "repos")
_BOUNDS_LIMIT = 100


class Grant(Frozen):
    """What a token allows. An empty bound allows every name, except that `shell` always has to be named."""

    scopes: tuple[str, ...]
    labels: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()
    max_permissions: str = "edit"

    @property
    def is_admin(self) -> bool:
        return ADMIN in self.scopes

    def has(self, scope: str) -> bool:
        return self.is_admin or scope in self.scopes

    def allows_label(self, label: str) -> bool:
        return self.is_admin or not self.labels or label in self.labels

    def allows_agent(self, agent: str) -> bool:
        if self.is_admin or agent in self.agents:
            return True
        return not self.agents and agent != SHELL

    def allows_repo(self, repo: str | None) -> bool:
        """A bound on repositories also excludes jobs without one: a directory could be a checkout of any."""
        return self.is_admin or not self.repos or repo in self.repos

    def allows_permissions(self, permissions: str) -> bool:
        return self.is_admin or PERMISSIONS.index(permissions) <= PERMISSIONS.index(self.max_permissions)

    def to_json(self) -> Json:
        return {**self.as_dict(), **{name: list(getattr(self, name)) for name in _LISTS}}


EVERYTHING = Grant(scopes=(ADMIN,), max_permissions=PERMISSIONS[-1])


def check_grant(
    scopes: Iterable[str],
    *,
    labels: Sequence[str] = (),
    agents: Sequence[str] = (),
    repos: Sequence[str] = (),
    max_permissions: str | None = None,
) -> Grant:
    """A grant from what a person typed."""
    named = list(dict.fromkeys(word.strip() for text in scopes for word in text.split(",")))
    if not named or "" in named:
        raise BadInput(why=f"give the scopes of the token: --scope {','.join(SCOPES)}, or some of them")
    for scope in named:
        if scope not in SCOPES:
            raise BadInput(why=f"{scope[:40]!r} is not a scope; choose from {', '.join(SCOPES)}")
    for what, names in (("label", labels), ("agent", agents), ("repository", repos)):
        if len(names) > _BOUNDS_LIMIT:
            raise BadInput(why=f"a token has at most {_BOUNDS_LIMIT} names of one kind")
        for name in names:
            input_rules.check_name(what, name)
    permissions = "edit" if max_permissions is None else max_permissions
    if permissions not in PERMISSIONS:
        raise BadInput(why=f"--max-permissions takes {', '.join(PERMISSIONS)}, not {permissions[:40]!r}")
    return Grant(
        scopes=tuple(named), labels=tuple(labels), agents=tuple(agents), repos=tuple(repos),
        max_permissions=permissions,
    )  # fmt: skip


def parse_grant(fields: Json) -> Grant:
    """A stored grant. One that this version does not understand allows nothing."""
    nothing = Grant(scopes=(), max_permissions=PERMISSIONS[0])
    if fields.keys() != Grant.all_fields.keys() or fields["max_permissions"] not in PERMISSIONS:
        return nothing
    lists = {name: fields[name] for name in _LISTS}
    if not all(isinstance(names, list) and all(isinstance(one, str) for one in names) for names in lists.values()):
        return nothing
    known = {name: tuple(names) for name, names in lists.items()}
    return Grant(**known, max_permissions=fields["max_permissions"])

"""The rules as the files of settings have them now. A worker reads them again for each permission, so that a new rule
counts at once.

Agents work beside these files, so nothing that happens to a file allows anything, except that a person who may write
the user's file writes a rule into it:

- While the user's file cannot be read, its last rules count, without those that allow.
- A project's rules count until the user trusts another version of its file. An agent may change or remove that file.
- A job in whose directory the user's file lies gets nothing allowed by it (`allows_in`).
"""

from __future__ import annotations

import errno
import os
from threading import Lock

from mam.config.file import check_values, parse_toml
from mam.config.project import SIZE_LIMIT, find_project_file, without_allow
from mam.config.settings import config_file
from mam.config.trust import is_trusted
from mam.errors import BadConfig
from mam.jobs.question import ALLOW
from mam.jobs.rules import Rule, rule_from_fields
from mam.util.frozen import Frozen
from mam.util.safe_read import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class _Read(Frozen):
    """What a file said last. The content is compared, since a file can change twice within a tick of its times."""

    content: bytes | None = None
    rules: tuple[Rule, ...] = ()


class RuleFiles:
    """Any thread may call it."""

    def __init__(self, say: Callable[[str], None] = lambda _words: None) -> None:
        """`say` gets a sentence when the user's file breaks, and when it can be read again."""
        self._say = say
        self._lock = Lock()
        self._user = self._project = _Read()
        self._problem: str | None = None

    def now(self, workdir: str | None = None) -> tuple[tuple[Rule, ...], ...]:
        """Those of the project's file and those of the user's, for a job in this directory."""
        with self._lock:
            self._read_project()
            self._read_user()
            project, user = self._project.rules, self._user.rules
            may_allow = self._problem is None
        if not (may_allow and allows_in(workdir)):
            user = tuple(rule for rule in user if rule.do != ALLOW)
        return project, user

    def _read_user(self) -> None:
        try:
            content = _content_of(config_file())
            if content is None and self._user.content is not None:
                raise BadConfig(file=config_file(), problem="is not there any more")
            if content != self._user.content:
                self._user = _Read(content=content, rules=_rules_in(content or b"", config_file()))
        except BadConfig as broken:
            self._report(str(broken))
        else:
            self._report(None)

    def _report(self, problem: str | None) -> None:
        if problem != self._problem:
            self._say(
                "the rules can be read again" if problem is None
                else f"{problem.removesuffix('.')}; until it can be read, no rule allows anything"
            )  # fmt: skip
        self._problem = problem

    def _read_project(self) -> None:
        """Only a version that the user has trusted replaces the one before."""
        try:
            found = find_project_file()
            if found is None or found.content == self._project.content or not is_trusted(found.path, found.digest):
                return
            rules = _rules_in(found.content, found.path, only_stricter=True)
        except (BadConfig, OSError):
            return
        self._project = _Read(content=found.content, rules=rules)


def allows_in(workdir: str | None) -> bool:
    """Whether the user's file lies outside of the directory in which an agent may write."""
    if workdir is None:
        return True
    directory, file = os.path.realpath(workdir), os.path.realpath(config_file())
    return os.path.commonpath((directory, file)) != directory


def _rules_in(content: bytes, file: str, *, only_stricter: bool = False) -> tuple[Rule, ...]:
    """Read from the file itself and not from the cache of settings, which decides nothing here."""
    found = check_values(parse_toml(content, file), file).get("rules", [])
    return tuple(map(rule_from_fields, without_allow(found, file) if only_stricter else found))


def _content_of(file: str) -> bytes | None:
    """None if there is no file."""
    try:
        content = read_regular(file, SIZE_LIMIT)[1]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise BadConfig(file=file, problem=error.strerror) from None
    if len(content) > SIZE_LIMIT:
        raise BadConfig(file=file, problem=f"has more than {SIZE_LIMIT:,} bytes")
    return content

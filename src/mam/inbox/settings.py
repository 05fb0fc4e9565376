"""The settings of one inbox, from the user's configuration and the command line."""

from __future__ import annotations

import os

from mam.bus.settings import broker_to_record
from mam.errors import BadInput
from mam.inbox.names import FLAT, INBOX, LOCAL_OWNER, MULTI, SINGLE, Target
from mam.inbox.prompt_valet_settings import read_old_settings
from mam.inbox.tree import QUEUE
from mam.jobs.input_rules import check_name
from mam.location.ownership import check_path_ownership
from mam.util.frozen import Frozen
from mam.util.notices import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.config.settings import Config
    from mam.jobs.record import Json

LABEL = "inbox"
SETTLE_SECONDS, LINGER_SECONDS = 1.0, 5.0


class Settings(Frozen):
    root: str
    mode: str = MULTI
    owner: str | None = None
    here: Target | None = None
    """In flat mode: the one target of all files."""
    here_path: str | None = None
    agent: str
    label: str = LABEL
    permissions: str = "edit"
    max_retries: int = 3
    uids: frozenset[int]
    """The users whose files are ingested."""
    settle_seconds: float = SETTLE_SECONDS
    """How long a file must stay unchanged before it is ingested."""
    linger_seconds: float = LINGER_SECONDS
    """How long an outcome stays in the inbox before it moves to `finished`."""
    jobs_root: str
    failure_archive: bool = False
    keep_days: int = 0
    """After how many days files in the mirror and in `processed` are deleted; 0 means never."""
    push: bool = False
    pull_request: bool = False
    repos: dict[str, str]
    on_idle: str = "show"
    broker: Json | None = None
    """What the records of its jobs name as their broker."""


def load_settings(
    config: Config, *, root: str | None = None, mode: str | None = None, agent: str | None = None
) -> Settings:
    """In order of precedence: the command line, the configuration, the defaults."""
    old = read_old_settings(os.path.abspath(os.path.expanduser(root or config.inbox.get("root") or os.getcwd())))
    if old.ignored:
        warn("mam.inbox", f"mam has no counterpart for these settings of prompt-valet: {', '.join(old.ignored)}")
    inbox, queue = {**old.inbox, **config.inbox}, {**old.queue, **config.queue}
    mode = mode or inbox.get("mode", MULTI)
    here_path = _repository() if mode == FLAT else None
    root = _root(root or inbox.get("root"), here_path)
    if mode == SINGLE and "owner" not in inbox:
        raise BadInput(why="single-owner mode needs `owner` in [inbox] of config.toml")
    jobs_root = os.path.expanduser(queue.get("jobs_root", os.path.join(root, QUEUE, "jobs")))
    return Settings(
        root=root, mode=mode, owner=inbox.get("owner"), here_path=here_path,
        here=None if here_path is None else _here(here_path),
        agent=default_agent(config, agent or inbox.get("agent")),
        label=check_name("label", inbox.get("label", LABEL)), permissions=inbox.get("permissions", "edit"),
        max_retries=queue.get("max_retries", 3), uids=frozenset({os.geteuid(), *map(_uid, inbox.get("owners", ()))}),
        settle_seconds=float(inbox.get("settle_seconds", SETTLE_SECONDS)),
        linger_seconds=float(inbox.get("linger_seconds", LINGER_SECONDS)),
        jobs_root=os.path.abspath(jobs_root), failure_archive=queue.get("failure_archive", False),
        keep_days=queue.get("keep_days", 0), push=inbox.get("push", False),
        pull_request=inbox.get("pull_request", False), repos=config.repos, on_idle=config.on_idle,
        broker=broker_to_record(config.broker),
    )  # fmt: skip


def mirror_location(config: Config) -> tuple[str, str] | None:
    """The root of the configured inbox, and its mirror; None if no inbox is configured."""
    root = config.inbox.get("root")
    if root is None:
        return None
    root = os.path.expanduser(root)
    return root, os.path.abspath(os.path.expanduser(config.queue.get("jobs_root", os.path.join(root, QUEUE, "jobs"))))


def resolve_root(config: Config, root: str | None, mode: str | None) -> str:
    """The root, for commands that only read."""
    mode = mode or config.inbox.get("mode", MULTI)
    return _root(root or config.inbox.get("root"), _repository() if mode == FLAT else None)


def _root(named: str | None, here_path: str | None) -> str:
    """In flat mode everything is below `.mam`, which mam excludes from git."""
    if named is not None:
        root = os.path.abspath(os.path.expanduser(named))
    else:
        root = os.path.join(here_path, ".mam") if here_path is not None else os.getcwd()
    if not os.path.isdir(root) and here_path is None:
        raise BadInput(why=f"{root} is not a directory; `mkdir` it, or name another with --root")
    if os.path.basename(root) == INBOX and not os.path.isdir(os.path.join(root, INBOX)):
        raise BadInput(why=f"--root names the directory above {INBOX}/; give {os.path.dirname(root)}")
    check_path_ownership(os.path.join(root, QUEUE), (os.path.join(root, INBOX),))
    return os.path.realpath(root)


def default_agent(config: Config, named: str | None = None) -> str:
    """The agent of a prompt that names none."""
    if named is not None:
        return check_name("agent", named)
    if config.default_agent is not None:
        return config.default_agent
    from mam.work.adapters import installed_agents

    found = installed_agents(config)
    if len(found) == 1:
        return found[0]
    some = f"; installed: {', '.join(found)}" if found else ""
    raise BadInput(why=f"no agent is set: add --agent A, or `agent` in [inbox] of config.toml{some}")


def _uid(name: str) -> int:
    from pwd import getpwnam

    if name.isdigit():
        return int(name)
    try:
        return getpwnam(name).pw_uid
    except KeyError:
        raise BadInput(why=f"[inbox] owners: there is no user {name[:80]!a} here") from None


def _repository() -> str:
    """The top directory of the current repository."""
    from mam.work.git.command import GitFailed, discover

    try:
        return discover(os.getcwd()).path("rev-parse", "--show-toplevel")
    except GitFailed as failed:
        raise BadInput(why=f"flat mode is for one repository, and {os.getcwd()} is not in one: {failed}") from None


def _here(path: str) -> Target:
    from mam.work.git.command import GitFailed, discover

    try:
        branch = discover(path).path("symbolic-ref", "--quiet", "--short", "HEAD")
    except GitFailed:
        raise BadInput(why=f"{path} is on no branch; check one out, because the work starts from it") from None
    letters = [letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in
               os.path.basename(path)]  # fmt: skip
    return Target(owner=LOCAL_OWNER, repo="".join(letters).lstrip(".-") or "repository", branch=branch)

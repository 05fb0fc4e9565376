"""The settings that git must ignore when mam runs it: commands, redirections and helpers that a repository names.

An agent can write its repository's settings, attributes and hooks. mam has three guards. Some settings are fixed. Each
command that the repository's configuration names is replaced by the one that the user's configuration names for the
same key, or by nothing: a user's filter (git-lfs) runs only with the user's command. The environment contains no git
variable except those set here.

git removes settings from the environment of processes that it starts in another repository: for a nested repository,
and for the other end of a fetch or push on this host. mam runs no git command that enters a nested repository. The
other end gets its settings from `service_command`.
"""

from __future__ import annotations

import shlex

from mam.machine.environment import absolute_path, without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Pairs = tuple[tuple[str, str], ...]

FIXED: Pairs = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", ""),
    ("core.alternateRefsCommand", "true"),
    ("diff.orderFile", "/dev/null"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("rerere.enabled", "false"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("status.submoduleSummary", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("receive.autogc", "false"),
)
TRANSPORTS = "file:git:http:https:ssh"
"""Transports that start only git and ssh."""
NO_TRANSPORT = ""
_OWN_SCOPES = ("local", "worktree")
_COMMANDS = {
    "core": ("sshcommand", "gitproxy"),
    "credential": ("helper",),
    "diff": ("external", "command", "textconv"),
    "filter": ("clean", "smudge", "process", "required"),
    "gc": ("recentobjectshook",),
    "gpg": ("program", "defaultkeycommand"),
    "lfs": ("clean", "smudge", "path", "args", "standalonetransferagent"),
    "merge": ("driver",),
    "remote": ("uploadpack", "receivepack", "vcs"),
    "submodule": ("update",),
    "trailer": ("command", "cmd"),
}


def neutralising_settings(listed: str) -> Pairs:
    """Settings that neutralise the commands in the repository's own configuration.

    `listed` is the output of `git config -z --show-scope --list`. An empty value ends a list of helpers and disables a
    filter; the user's own values follow it.
    """
    users: dict[str, list[str]] = {}
    own: dict[str, None] = {}
    hooks: dict[str, None] = {}
    for scope, key, value in _entries(listed):
        section, name = key.partition(".")[0], key.rpartition(".")[2]
        if section == "hook":
            hooks[key.rpartition(".")[0]] = None
        if name not in _COMMANDS.get(section, ()):
            continue
        if scope in _OWN_SCOPES:
            own[key] = None
        elif scope != "command":
            users.setdefault(key, []).append(value)
    pairs = [pair for key in own for pair in ((key, ""), *((key, value) for value in users.get(key, ())))]
    return (*pairs, *((f"{hook}.enabled", "false") for hook in hooks))


def _entries(listed: str) -> Iterator[tuple[str, str, str]]:
    fields = listed.split("\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, equals, value = entry.partition("\n")
        yield scope, key, value if equals else "true"


def environment(environ: Mapping[str, str], pairs: Pairs, transports: str) -> dict[str, str]:
    """The user's environment, for HOME and what filters need, without any variable that controls git."""
    kept = {name: value for name, value in without_secrets(environ).items() if not name.startswith("GIT_")}
    return {
        **kept,
        **_as_variables(pairs),
        "PATH": absolute_path(environ),
        "GIT_ALLOW_PROTOCOL": transports,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": "/dev/null",
        "GIT_EDITOR": "false",
        "LC_ALL": "C",
    }


def service_command(service: str, pairs: Pairs) -> str:
    """The shell command that serves a fetch or a push in a repository on this host."""
    words = [f"{name}={shlex.quote(value)}" for name, value in _as_variables(pairs).items()]
    return " ".join([*words, "git", service])


def _as_variables(pairs: Pairs) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables

"""Errors of the session directory.

An outdated directory is a result and not an error (see lookup.py). These errors are for rejected acts, and for a valid
record that points at a session that mam must not touch.
"""

from __future__ import annotations

from mam.errors import MamError


class BadName(MamError):
    """{name} cannot name an agent: {why}."""

    exit_code = 2


class NoLiveRecord(MamError):
    """No live record for {name}: {why}."""


class AmbiguousName(MamError):
    """{name} could be any of: {candidates}."""

    exit_code = 6


class GenerationConflict(MamError):
    """Ownership conflict: agent {agent} belongs to generation {owner}{until}; generation {generation} was refused."""

    exit_code = 4


class InvalidAgentRecord(MamError):
    """The record of agent {agent} is not valid: {problem}."""


class NewerRecord(MamError):
    """The record of agent {agent} was written by a newer program ({problem}); it was left as it is."""


class LeaseInThePast(MamError):
    """The lease of agent {agent} would have ended at {expires_at}, which is in the past; publish it with a later
    one."""


class NotPublished(MamError):
    """Agent {agent} has no record to change: {why}."""


class ManifestNotAbsolute(MamError):
    """The record of {name} names the manifest {path}, which is not an absolute path; nothing was done."""


class ManifestMissing(MamError):
    """The manifest of {name} is not at {path}; nothing was done."""


class ManifestUnreadable(MamError):
    """The manifest of {name}, {path}, cannot be used: {problem}; nothing was done."""


class BackendNotTmux(MamError):
    """{name} runs under {backend}, not under tmux, so mam cannot reach it; nothing was done."""


class SessionDiffers(MamError):
    """The manifest of {name} names the tmux session {manifest}, but its record names {record}; nothing was done."""


class NameDiffers(MamError):
    """The manifest that {name} points at belongs to {manifest}; nothing was done."""


class GenerationDiffers(MamError):
    """{what} of {name} has generation {found}, but its record has generation {record}; nothing was done."""

    exit_code = 4


class DefinitionNotAbsolute(MamError):
    """The agent definition directory of {name}, {path}, is not an absolute path; --agent-def-dir names another."""


class DefinitionMissing(MamError):
    """The agent definition directory of {name}, {path}, does not exist here; --agent-def-dir names another."""


class OnAnotherHost(MamError):
    """{name} runs on {host}, so mam cannot reach its tmux from here; nothing was done."""


class ServerGone(MamError):
    """The tmux server of {name} is gone ({socket}); `mam agents restart {name}` starts it again."""


class ServerReplaced(MamError):
    """The tmux server at {socket} is not the one of {name}; nothing was done."""


class ServerUnknown(MamError):
    """The state of {name} is unknown: {why}."""

    exit_code = 9


class SessionGone(MamError):
    """The tmux session {session} of {name} is gone; `mam agents restart {name}` starts it again."""


class SessionReplaced(MamError):
    """The tmux session {session} has the name of {name}'s session but is another one; nothing was done."""


class SessionOccupied(MamError):
    """There is already a tmux session {session} at {socket}; --session names another, `mam agents adopt` takes it."""


class EndedAtOnce(MamError):
    """{program} ended right after it was started for {name}{hint}; its session is gone."""


class PaneDead(MamError):
    """The program in the pane of {name} has ended; nothing was sent."""


class PaneInMode(MamError):
    """The pane of {name} is in {mode}, where keys are commands; nothing was sent."""


class PaneAsks(MamError):
    """The pane of {name} shows a question ({question}), which the text could answer by accident; nothing was sent."""


class PersonTypes(MamError):
    """A person typed into the session of {name} {seconds} s ago; nothing was sent, try again in {wait} s."""


class SentBefore(MamError):
    """Sending the text with the key {key} to {name} was not confirmed; check its pane to see whether it arrived."""


class SendUnknown(MamError):
    """The text for {name} was pasted and not submitted: {why}."""


class TmuxMissing(MamError):
    """tmux is not installed here; it runs the sessions of agents: apt-get install tmux"""

    exit_code = 9


class NoServer(MamError):
    """There is no tmux server: {why}."""


class NoAnswer(MamError):
    """tmux gave no answer, so the state is unknown: {why}."""

    exit_code = 9


class TmuxFailed(MamError):
    """tmux could not {what}: {problem}."""

    exit_code = 9


class SessionServed(MamError):
    """Another worker already serves the session {name}; a session takes one job at a time."""


class TurnNotBegun(MamError):
    """A line was typed into the session of {name}, but nothing shows that the agent took it: {why}."""

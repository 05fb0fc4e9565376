"""What can go wrong between a name and the session it stands for; each failure has a sentence of its own.

A directory that is out of date is an answer and not an error (see answer.py). These are for acts that were refused,
and for a fresh record that points at something it must not reach.
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
    """The lease of agent {agent} would have ended at {expires_at}, which is over; publish it with a later one."""


class NotPublished(MamError):
    """Agent {agent} has no record that could be changed: {why}."""


class ManifestNotAbsolute(MamError):
    """The record of {name} names the manifest {path}, which is not an absolute path; nothing was done."""


class ManifestMissing(MamError):
    """The manifest of {name} is not at {path}; nothing was done."""


class ManifestUnreadable(MamError):
    """The manifest of {name}, {path}, cannot be used: {problem}; nothing was done."""


class BackendNotTmux(MamError):
    """{name} runs under {backend} and not under tmux, so that it cannot be reached from here; nothing was done."""


class SessionDiffers(MamError):
    """The manifest of {name} names the tmux session {manifest}, its record names {record}; nothing was done."""


class NameDiffers(MamError):
    """The manifest that {name} points at is that of {manifest}; nothing was done."""


class GenerationDiffers(MamError):
    """{what} of {name} is of generation {found}, its record is of generation {record}; nothing was done."""

    exit_code = 4


class DefinitionNotAbsolute(MamError):
    """The agent definition directory of {name}, {path}, is not an absolute path; --agent-def-dir names another."""


class DefinitionMissing(MamError):
    """The agent definition directory of {name}, {path}, is no directory here; --agent-def-dir names another."""


class OnAnotherHost(MamError):
    """{name} runs on {host}, and its tmux cannot be reached from here; nothing was done."""


class ServerGone(MamError):
    """The tmux server of {name} is gone ({socket}); `mam agents restart {name}` starts it anew."""


class ServerReplaced(MamError):
    """At {socket} answers another tmux server than the one of {name}; nothing was done."""


class ServerUnknown(MamError):
    """Whether {name} is there cannot be told: {why}."""

    exit_code = 9


class SessionGone(MamError):
    """The tmux session {session} of {name} is gone; `mam agents restart {name}` starts it anew."""


class SessionReplaced(MamError):
    """The tmux session {session} is not the one of {name}, it only has its name; nothing was done."""


class SessionOccupied(MamError):
    """There is already a tmux session {session} at {socket}; --session names another, `mam agents adopt` takes it."""


class EndedAtOnce(MamError):
    """{program} ended as soon as it was started for {name}{hint}; the session is gone with it."""


class PaneDead(MamError):
    """The program in the pane of {name} has ended; nothing was sent."""


class PaneInMode(MamError):
    """The pane of {name} is in {mode}, where keys are commands; nothing was sent."""


class PaneAsks(MamError):
    """The pane of {name} shows a question ({question}), which a text could answer by accident; nothing was sent."""


class PersonTypes(MamError):
    """Somebody typed into the session of {name} {seconds} s ago; nothing was sent, try again in {wait} s."""


class SentBefore(MamError):
    """A text with the key {key} was begun for {name} and not confirmed; whether it arrived only its pane can tell."""


class SendUnknown(MamError):
    """The text for {name} was pasted and not submitted: {why}."""


class TmuxMissing(MamError):
    """tmux is not installed here; it runs the sessions of agents: apt-get install tmux"""

    exit_code = 9


class NoServer(MamError):
    """There is no tmux server: {why}."""


class NoAnswer(MamError):
    """tmux gave no answer, so that it is not known what is there: {why}."""

    exit_code = 9


class TmuxFailed(MamError):
    """tmux could not {what}: {problem}."""

    exit_code = 9


class SessionServed(MamError):
    """Another worker serves the session {name} already; one session takes one job at a time."""


class TurnNotBegun(MamError):
    """A line was typed into the session of {name}, and nothing shows that it was taken: {why}."""

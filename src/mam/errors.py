"""Everything that can go wrong, with the sentence the user reads and the exit code the script sees.

The docstring of a class is its message; names in braces are filled from the facts given when it is raised.
"""

from __future__ import annotations


class MamError(Exception):
    """Something went wrong."""

    exit_code = 1

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        message = " ".join((type(self).__doc__ or type(self).__name__).split())
        shown = {name: ", ".join(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}
        super().__init__(message.format(**shown))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.facts))


def _rebuild(kind: type[MamError], facts: dict[str, object]) -> MamError:
    return kind(**facts)


class UnknownJob(MamError):
    """No job {job} in {store}."""


class AmbiguousId(MamError):
    """{prefix} could be any of: {candidates}{more}."""

    exit_code = 6


class IllegalMove(MamError):
    """Job {job} is {status} and cannot become {to}."""


class Refused(MamError):
    """{why}"""


class UnknownStatus(MamError):
    """{word} is not a status; choose from {choices}."""


class AlreadyRegistered(MamError):
    """A job {job} exists already; nothing was overwritten."""


class ArtifactMissing(MamError):
    """Job {job} is not complete: {artifact} {problem}."""


class AttemptNeeded(MamError):
    """Writing to job {job} needs --attempt here (require_attempt is on); `mam get {job}` shows the current one."""


class ClaimLost(MamError):
    """Attempt {attempt} does not hold job {job}: {why}."""

    exit_code = 4


class GenerationLost(MamError):
    """Agent {agent} belongs to generation {owner} now; generation {generation} has to stand down."""

    exit_code = 4


class BadInput(MamError):
    """{why}"""

    exit_code = 2


class NothingToPick(MamError):
    """No pending job for {label}{why}."""

    exit_code = 3


class TimedOut(MamError):
    """{what} within {seconds} s."""

    exit_code = 5


class BadRecord(MamError):
    """{file}: {problem}; it was left as it is."""


class StoreUnavailable(MamError):
    """{store}: {problem}."""

    exit_code = 9


class StoreMissing(MamError):
    """No store at {store}; `mam init --store {store}` makes one, and so does the first `mam register`."""

    exit_code = 9


class StoreUntrusted(MamError):
    """{store} {problem}. mam runs, sends and changes nothing of it until you have looked at it and approved it once:
    `mam trust {store}`."""


class BadConfig(MamError):
    """{file}: {problem}."""

    exit_code = 2


class StoreReadOnly(StoreUnavailable):
    """{store} cannot be written: {problem}."""


class WorkDirMissing(MamError):
    """Job {job} cannot run on this host yet: {why}."""


class WorkDirUnusable(MamError):
    """Job {job} has nowhere to run: {why}."""


class MachineUnfit(MamError):
    """This machine cannot run job {job} now: {why}."""


class FetchFailed(MamError):
    """The repository {repository} could not be fetched: {why}."""


class InboxTaken(MamError):
    """The inbox {root} belongs to the store {store}, and this is {other}; add --store, or remove {page} if that store
    is gone for good."""

    exit_code = 2


class InboxUnfinished(MamError):
    """Not everything could be finished; what is left is taken up by the next `mam inbox`."""


class WorkspaceKept(MamError):
    """The workspace of job {job} was kept: {why}."""


class UnknownAgent(MamError):
    """{agent} is not an agent that can be run here; there are {known}. A table [commands.{agent}] in {file} adds it."""


class AgentNotFound(MamError):
    """The agent {agent} cannot be started: {why}."""


class ProgramNotFound(MamError):
    """There is no program {program} here; nothing was registered."""


class ProgramUnfit(MamError):
    """{program} cannot be run: it is {what}; nothing was registered."""


class BrokerUnavailable(MamError):
    """The broker {broker} {problem}."""

    exit_code = 9


class InsecureBroker(MamError):
    """The broker {broker} is not on this host and has no TLS: everybody on the way could read and forge the news. Set
    MQTT_TLS=1, or add --insecure-broker if that is meant."""

    exit_code = 2

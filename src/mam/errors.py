"""All errors, each with its message and its exit code.

The docstring of a class is its message; names in braces are filled from the arguments of the constructor.
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


class NoSuchWorker(MamError):
    """No live worker has the name {worker}; `mam workers` lists them."""


class NotAllowed(MamError):
    """{who} may not {what}{why}."""


class NotLoggedIn(MamError):
    """{why}"""


class AmbiguousId(MamError):
    """{prefix} could be any of: {candidates}{more}."""

    exit_code = 6


class IllegalMove(MamError):
    """Job {job} is {status} and cannot become {to}."""


class Refused(MamError):
    """{why}"""


class UnknownStatus(MamError):
    """{word} is not a status{hint}; choose from {choices}."""


class AlreadyRegistered(MamError):
    """A job {job} exists already; nothing was overwritten."""


class ArtifactMissing(MamError):
    """Job {job} is not complete: {artifact} {problem}."""


class KeyReused(MamError):
    """Job {job} has this key, and another {field}; repeat the first request, or choose another key."""


class JobChanged(MamError):
    """Job {job} changed since you read it; nothing was written."""


class AttemptNeeded(MamError):
    """Writing to job {job} needs --attempt here (require_attempt is on); `mam get {job}` shows the current one."""


class ClaimLost(MamError):
    """Attempt {attempt} does not hold job {job}: {why}."""

    exit_code = 4


class AnswerTooLate(MamError):
    """Question {question} {why}; the answer was not stored."""

    exit_code = 4


class GenerationLost(MamError):
    """Agent {agent} belongs to generation {owner} now; generation {generation} has been replaced and must stop."""

    exit_code = 4


class BadInput(MamError):
    """{why}"""

    exit_code = 2


class NothingToPick(MamError):
    """No pending job for {label}{why}."""

    exit_code = 3


class JobsLeft(MamError):
    """Jobs of {labels} are left: {statuses}; `mam explain JOB` reports why."""

    exit_code = 3


class TimedOut(MamError):
    """{what} within {seconds} s."""

    exit_code = 5


class BadRecord(MamError):
    """{file}: {problem}; the file was not changed."""


class StoreUnavailable(MamError):
    """{store}: {problem}."""

    exit_code = 9


class StoreUnconfirmed(StoreUnavailable):
    """{store}: the server did not confirm the write within {seconds} s (a synchronous standby may be away). It may have
    taken effect: ask with `mam list` or `mam get` before you repeat it. A job with a key may be registered again with
    the same --key."""


class StoreOutdated(StoreUnavailable):
    """{store} has schema {version} of {current}; `mam init --store {store}` brings it up to date."""


class StoreMissing(MamError):
    """No store at {store}; `mam init --store {store}` makes one, and so does the first `mam register`. `mam list
    --everywhere` shows the stores that you have opened."""

    exit_code = 9


class StoreUntrusted(MamError):
    """{store} {problem}. mam does not use it until you have inspected and approved it: `mam trust {store}`."""


class BadConfig(MamError):
    """{file}: {problem}."""

    exit_code = 2


class StoreReadOnly(StoreUnavailable):
    """{store} cannot be written: {problem}."""


class WorkDirMissing(MamError):
    """Job {job} cannot run on this host yet: {why}."""


class WorkDirUnusable(MamError):
    """Job {job} has no directory to run in: {why}."""


class MachineUnfit(MamError):
    """This machine cannot run job {job} now: {why}."""


class FetchFailed(MamError):
    """The repository {repository} could not be fetched: {why}."""


class InboxTaken(MamError):
    """The inbox {root} belongs to the store {store}, and this is {other}; add --store, or remove {page} if that store
    is gone for good."""

    exit_code = 2


class InboxUnfinished(MamError):
    """Some files could not be processed; the next `mam inbox` continues with them."""


class WorkspaceKept(MamError):
    """The workspace of job {job} was kept: {why}."""


class UnknownAgent(MamError):
    """{agent} is not an agent that can be run here; there are {known}. A table [commands.{agent}] in {file} adds it."""


class ConversationGone(MamError):
    """Job {job} cannot continue the conversation: {why}. `mam retry {retry}` starts from the beginning."""


class AgentNotFound(MamError):
    """The agent {agent} cannot be started: {why}."""


class ProgramNotFound(MamError):
    """The program {program} was not found; nothing was registered."""


class ProgramUnfit(MamError):
    """{program} cannot be run: it is {what}; nothing was registered."""


class BrokerUnavailable(MamError):
    """The broker {broker} {problem}."""

    exit_code = 9


class InsecureBroker(MamError):
    """The broker {broker} is on another host and has no TLS: others on the network could read and forge events. Set
    MQTT_TLS=1, or add --insecure-broker to accept that."""

    exit_code = 2

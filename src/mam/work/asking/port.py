"""The port through which an agent's adapter asks a person: `Asker`.

An asker knows one job and the claim that holds it. `decide` stores a question, fenced by the attempt, and waits until
it is closed. Meanwhile the job's clocks stand still and it leaves its place in the worker to another job.

    asker = find_asker(os.environ)  # finding.py; None: this process belongs to no job, or to one that may not ask
    decision = asker.decide(
        Draft(kind=PERMISSION, text="It wants to run a command.", tool="Bash", input={"command": "git push"})
    )
    if decision.is_allowed:
        ...  # tell the agent "once"; mam writes no settings of an agent
    else:
        decision.message  # what the model reads: the person's reason, or why there is none

For a question with choices, `decision.text` is the chosen one. The text of a draft says in a few words what is asked;
`tool` and `input` hold the exact tool and its exact input, so that a person sees both and the digest covers both.

There are three askers:

- `DoorAsker` (at_door.py), in a process of the agent that has MAM_SOCKET: a hook, or a driver of the agent's protocol;
- `WorkerAsker` (in_worker.py), in the worker: for an adapter that speaks the protocol there; `door.asker`.
  The other two end here, and so does `mam ask` of a script that holds its job by `mam pick`;
- `SessionAsker` (at_session.py), in a hook of a live session: it waits on the session's directory and outlives workers.

Rules of the user may decide at once; the agent then gets its decision without a person. `is_undecided` is true if no
one decided: the deadline passed, or the attempt ended. Only then is a denial the job's failure (denials.py). `tool` has
to be the name that the agent's report reader gives to `Report.deny`: by it, a refusal in the output is recognized as
one that was decided.

`decide` raises MamError if it cannot ask: Refused if the job may not ask, ClaimLost if another worker has the job,
StoreUnavailable if the worker is gone. An adapter then does what it does without a person.
"""

from __future__ import annotations

from mam.jobs.question import (
    ALLOW,
    ALWAYS,
    ANSWERED,
    DEADLINE,
    DENY,
    EXPIRED,
    PERMISSION,
    RULE,
    Question,
)
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mam.jobs.question import Draft

    class Asker(Protocol):
        def decide(self, draft: Draft, is_over: Callable[[], bool] = lambda: False) -> Decision:
            """Asks, and returns when the question is closed. It looks at `is_over` at least every `LOOK_SECONDS`: when
            that is true, the agent no longer waits, and the question is withdrawn."""


LOOK_SECONDS = 1.0

ANSWER, WITHDRAWN = "answer", "withdrawn"
"""Outcomes besides ALLOW and DENY: a text, and none because the attempt no longer needs one."""

_NO_ANSWER = "No one answered before the deadline, so this is refused."
_REFUSED = {DEADLINE: _NO_ANSWER, RULE: "A rule of the user refuses this."}


class Decision(Frozen):
    """The text that the agent gets."""

    outcome: str
    """ALLOW, DENY, ANSWER or WITHDRAWN."""
    text: str | None = None
    """The answer to a question."""
    reason: str | None = None
    """What the person, or the rule, wants the agent to know."""
    decided: str | None = None
    """PERSON, RULE or DEADLINE; None if it was withdrawn."""
    question: int | None = None
    """The number of the question; None if a rule decided."""

    @property
    def is_allowed(self) -> bool:
        return self.outcome == ALLOW

    @property
    def is_undecided(self) -> bool:
        """Whether neither a person nor a rule decided."""
        return self.decided in (None, DEADLINE)

    @property
    def message(self) -> str:
        """For the model: the answer, or why the tool did not run."""
        if self.outcome == WITHDRAWN:
            return "No one will answer this: the attempt has ended."
        if self.outcome == ANSWER:
            return self.text or ""
        if self.outcome == ALLOW:
            return self.reason or ""
        return self.reason or _REFUSED.get(self.decided or "", "A person refused this.")


def decision_of(question: Question) -> Decision:
    """The decision of a closed question."""
    if question.state not in (ANSWERED, EXPIRED):
        return Decision(outcome=WITHDRAWN, question=question.number)
    outcome, text = ANSWER, question.answer
    if question.answer == DENY:
        outcome, text = DENY, None
    elif question.kind == PERMISSION:
        outcome, text = ALLOW if question.answer in (ALLOW, ALWAYS) else DENY, None
    return Decision(
        outcome=outcome, text=text, reason=question.reason, decided=question.decided, question=question.number or None
    )

"""How a worker answers permissions without a person: by the user's rules, and by earlier answers `always`."""

from __future__ import annotations

from mam.config.rule_files import RuleFiles
from mam.errors import UnknownJob
from mam.jobs.question import ALLOW, ANSWERED, DENY, RULE, Question, digest_of
from mam.jobs.rules import ASK, always_allowed, deciding_rule
from mam.util.frozen import Frozen
from mam.work.masking import Mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mam.config.settings import Config
    from mam.jobs.question import Draft
    from mam.jobs.record import Job
    from mam.jobs.rules import Rule
    from mam.registry import Registry

PERMISSION_SECONDS = 3600.0
"""The deadline of a permission that names none."""

CHAIN_LIMIT = 100
"""Jobs that one job continues."""

_SHOWN = 500
"""Characters of a command that the audit log gets; the digest covers all of it."""


class Policy(Frozen):
    permission_seconds: float | None = PERMISSION_SECONDS
    """None: no deadline, for a live session, at which a person has all the time that the job has."""
    rules: Callable[[str | None], Sequence[Sequence[Rule]]] | None = None
    """The rules of each file as they are now, for a job in this directory."""
    secrets: tuple[str, ...] = ()
    """Values that the audit log must not contain."""


def policy_of(
    config: Config, secrets: Iterable[str], say: Callable[[str], None],
    usual_seconds: float | None = PERMISSION_SECONDS,
) -> Policy:  # fmt: skip
    """The policy of this host. The rules are read now, before an agent can change a project's file."""
    files = RuleFiles(say)
    if config.rules:
        files.now()
    return Policy(
        permission_seconds=config.questions.get("deadline_seconds", usual_seconds), rules=files.now,
        secrets=tuple(secrets),
    )  # fmt: skip


class Verdict(Frozen):
    """What is decided without a person."""

    answer: str
    rule: str
    """The rule, or the question that was answered with `always`."""
    reason: str | None = None


def verdict_of(registry: Registry, policy: Policy, job: Job, draft: Draft) -> Verdict | None:
    """None: a person has to decide. A rule that denies is stronger than `always`, which is stronger than one that
    asks."""
    rule = deciding_rule(policy.rules(job.workdir) if policy.rules else (), job.agent, draft)
    if rule is not None and rule.do == DENY:
        return Verdict(answer=DENY, rule=str(rule), reason=rule.reason)
    always = always_allowed(_chain(registry, job), draft)
    if always is not None:
        return Verdict(answer=ALLOW, rule=f"always, by {always.answered_by}")
    return None if rule is None or rule.do == ASK else Verdict(answer=rule.do, rule=str(rule))


def _chain(registry: Registry, job: Job) -> Iterator[Job]:
    """The job, and those that it continues."""
    for _ in range(CHAIN_LIMIT):
        yield job
        if job.continues is None:
            return
        try:
            job = registry.get_exact(job.continues)
        except UnknownJob:
            return


def closed_by(verdict: Verdict, draft: Draft, attempt: int, now: str) -> Question:
    """The question as the agent's asker gets it; it is not stored, so it has no number."""
    return Question(
        number=0, attempt=attempt, kind=draft.kind, text=draft.text, tool=draft.tool, digest=digest_of(draft),
        asked_at=now, state=ANSWERED, answer=verdict.answer, reason=verdict.reason, answered_at=now, decided=RULE,
    )  # fmt: skip


def what_is_asked(policy: Policy, draft: Draft) -> str:
    """For the audit log: the command or the input, in one line, without known secrets."""
    import json

    given = draft.input or {}
    command = given.get("command", given)
    text = command if isinstance(command, str) else json.dumps(command, ensure_ascii=False)
    masked = Mask(policy.secrets).apply(text.encode(errors="replace")).decode(errors="replace")
    return masked if len(masked) <= _SHOWN else f"{masked[:_SHOWN]}…"

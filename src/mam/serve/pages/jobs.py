"""One job: result, changes and checks first, then its conversation, its life and its parts."""

from __future__ import annotations

from markupsafe import Markup

from mam.access.grant import ANSWER
from mam.jobs.changed_files import changes_of
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.overview import where
from mam.jobs.question import DENY, PERMISSION, open_questions, question_id
from mam.jobs.status import COMPLETED, RUNNING, Status
from mam.questions import Asked
from mam.serve.pages import ansi, markdown
from mam.serve.pages.actions import Action, actions_of, apply_action, continue_hindrance, short_id
from mam.serve.pages.artifacts import ArtifactRow, artifact_rows
from mam.serve.pages.asking import QuestionRow, question_row
from mam.serve.pages.conversation_blocks import ConversationBlocks, blocks_of
from mam.serve.pages.conversations import Window, items_of, last_sentence, output_window, reader_of
from mam.serve.pages.facts import Fact, claimed, found, judged
from mam.serve.pages.moments import When, ago
from mam.serve.pages.reviews import Review, review_of
from mam.serve.pages.rows import Chip, chip_of, sentence_of, spent_words, title_of
from mam.serve.pages.strip import Part, strip_of
from mam.serve.pages.when_idle import reason_of
from mam.util.frozen import Frozen
from mam.util.safe_text import many_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.registry import AuthorizedRegistry
    from mam.jobs.overview import Overview
    from mam.jobs.question import Question
    from mam.jobs.record import Job

RELATIVES_SHOWN = 12
_RELATIONS = {
    "retry_of": "the retry of", "retried_as": "retried as", "continues": "continues", "continued_by": "continued by",
    "parent": "child of", "child": "parent of", "after": "after",
}  # fmt: skip


class RelativeRow(Frozen):
    words: str
    job_id: str
    short: str
    chip: Chip | None
    """None if the job is gone."""


class Composer(Frozen):
    """The one box below a conversation: it answers an open question, otherwise it continues the conversation."""

    path: str
    name: str
    """The field of the text."""
    command: str
    hint: str
    label: str = "Send"
    fields: tuple[tuple[str, str], ...] = ()
    hindrance: str = ""


class JobPage(Frozen):
    job_id: str
    short: str
    chip: Chip
    is_running: bool
    stage: str
    """Changes when the job starts, asks or ends."""
    title: str
    prompt: Markup
    by_line: tuple[str, ...]
    registered: When | None
    now: str
    """What happens now, or why nothing does, in one sentence; empty when it has ended."""
    why: tuple[str, ...]
    questions: tuple[QuestionRow, ...]
    result: Markup
    reason: str
    changes: str
    apply: Action | None
    claimed: tuple[Fact, ...]
    found: tuple[Fact, ...]
    judged: tuple[Fact, ...]
    strip: tuple[Part, ...]
    conversation: ConversationBlocks | None
    output: Markup
    """The output of a program that has no conversation."""
    window: Window | None
    composer: Composer
    review: Review | None
    """None if it was left out."""
    artifacts: tuple[ArtifactRow, ...]
    relatives: tuple[RelativeRow, ...]
    more_children: int
    spent: tuple[tuple[str, str], ...]
    actions: dict[str, Action]
    can_be_judged: bool
    pause: str
    """The agent whose claims can be paused from here; empty for a job that has ended."""


def job_page(
    registry: AuthorizedRegistry, job_id: str, *, output_end: int | None = None, file: str | None = None,
    with_diff: bool = True,
) -> JobPage:  # fmt: skip
    """`output_end` selects an earlier part of the output, and `file` one file of a large diff. Without `with_diff`, the
    diff is left out, which takes longer than all the rest."""
    overview = registry.overview(job_id)
    job, now_ms = overview.job, registry.registry.store.clock.now().wall_ms
    window = output_window(registry, job, job.attempt, output_end)
    conversation, output = _conversation(job, window)
    can_be_seen = actions_of(job, registry.viewer)
    said = last_sentence(registry, job) if job.questions else ""
    shown = [one for one in overview.chain if one.relation != "child"]
    children = [one for one in overview.chain if one.relation == "child"]
    relatives = (shown + children)[:RELATIVES_SHOWN]
    return JobPage(
        job_id=job.job_id, short=short_id(job), chip=chip_of(job, overview.state), is_running=job.status is RUNNING,
        stage=f"{job.status} {job.attempt} {len(open_questions(job))}",
        title=title_of(job), prompt=markdown.to_html(job.prompt), by_line=_by_line(job),
        registered=ago(job.created_at, now_ms), why=tuple(map(one_line, overview.why)),
        now=_now(registry, overview, conversation, window),
        questions=tuple(question_row(Asked(job=job, question=one), now_ms, said) for one in open_questions(job)),
        result=markdown.to_html(job.result) if job.result else Markup(),
        reason=many_lines(job.reason) if job.reason and job.status is not COMPLETED else "",
        changes=_changes(job), apply=apply_action(job, registry.viewer),
        claimed=claimed(job), found=found(job), judged=judged(job, now_ms),
        strip=strip_of(registry.history(job.job_id), now_ms), conversation=conversation, output=output, window=window,
        composer=_composer(registry, job), review=review_of(registry, job, file) if with_diff else None,
        artifacts=artifact_rows(registry, job),
        relatives=tuple(_relative(one.relation, one.job_id, one.status) for one in relatives),
        more_children=max(0, overview.children - len(children)), spent=_spent(job),
        actions=can_be_seen, can_be_judged=_can_be_judged(overview),
        pause="" if job.status.ended else job.agent,
    )  # fmt: skip


def _now(
    registry: AuthorizedRegistry, overview: Overview, conversation: ConversationBlocks | None, window: Window | None
) -> str:
    """The tool that runs, which the conversation names more exactly than the latest event; otherwise as in a list."""
    job = overview.job
    if job.status.ended:
        return ""
    last = conversation.blocks[-1] if conversation is not None and conversation.blocks else None
    is_end = window is not None and window.is_last
    runs = last is not None and is_end and last.kind == "tool" and last.state == "running"
    tool = f"{last.verb} {last.target}" if last is not None and runs else ""
    if tool and chip_of(job, overview.state).look == "run":
        return tool
    sentence = sentence_of(job, overview.state) or reason_of(registry, job)
    return f"{sentence}, while {tool}" if tool and not open_questions(job) else sentence


def conversation_version(job: Job, size: int) -> str:
    """Changes when the conversation of a page does."""
    return f"{job.attempt}-{job.status}-{size}-{job.updated_at}"


def _conversation(job: Job, window: Window | None) -> tuple[ConversationBlocks | None, Markup]:
    if window is None:
        return None, Markup()
    if reader_of(job.agent) is None:
        return None, ansi.to_html(window.data)
    place = (job.run or {}).get("place") or job.workdir
    return blocks_of(items_of(job, window), place if isinstance(place, str) else None), Markup()


def _by_line(job: Job) -> tuple[str, ...]:
    """Who works where."""
    about = where(job)
    agent = f"{job.agent} ({job.model})" if job.model else job.agent
    label = "" if job.agent_session == job.agent else f"label {job.agent_session}"
    attempt = f"attempt {job.attempt}" if job.attempt else ""
    host = f"on {about['host']}" if about["host"] and job.attempt else ""
    branch = changes.branch if (changes := changes_of(job)) is not None else None
    words = (agent, label, " ".join(part for part in (attempt, host) if part), *spent_words(job),
             f"branch {branch}" if branch else "")  # fmt: skip
    return tuple(one_line(word) for word in words if word)


def _changes(job: Job) -> str:
    changes = changes_of(job)
    return "" if changes is None else one_line(changes.summary().replace(" -", " −"))


def _composer(registry: AuthorizedRegistry, job: Job) -> Composer:
    asked = open_questions(job)
    if asked and registry.viewer.may(ANSWER) and (found := _answering(job, asked[0])) is not None:
        return found
    hint = "Continue this conversation…" if job.status.ended else "Add work; it starts when this job has ended…"
    return Composer(
        path=f"/jobs/{job.job_id}/continue", name="prompt", command=f'mam continue {short_id(job)} "…"', hint=hint,
        hindrance=continue_hindrance(job, registry.viewer),
    )  # fmt: skip


def _answering(job: Job, question: Question) -> Composer | None:
    """None for a question that only takes one of its choices."""
    seen = (("attempt", str(question.attempt)), ("digest", question.digest), ("back", f"/jobs/{job.job_id}"))
    path, name = f"/questions/{question_id(job.job_id, question.number)}", f"{short_id(job)}.{question.number}"
    if question.kind == PERMISSION:
        return Composer(
            path=path, name="reason", fields=(*seen, ("answer", DENY)), label="Deny with this",
            command=f'mam answer {name} deny --reason "…"', hint="Deny, and tell it what to do instead…",
        )  # fmt: skip
    if question.choices:
        return None
    return Composer(
        path=path, name="text", fields=seen, label="Answer", command=f'mam answer {name} "…"', hint="Your answer…"
    )


def _relative(relation: str, job_id: str, status: Status | None) -> RelativeRow:
    looks = {"pending": "idle", "waiting": "wait", "running": "run", "completed": "ok", "error": "bad"}
    chip = None if status is None else Chip(look=looks.get(status, "idle"), word=str(status))
    return RelativeRow(
        words=_RELATIONS.get(relation, relation), job_id=job_id, short=job_id[:ID_PREFIX_SHOWN], chip=chip
    )


def _spent(job: Job) -> tuple[tuple[str, str], ...]:
    """Names and figures of what the latest attempt cost."""
    from mam.jobs.overview import cost_of, seconds_of
    from mam.serve.pages.moments import words_of
    from mam.util.figures import money

    cost, took = cost_of(job) or {}, seconds_of(job)
    usd = cost.get("usd")
    tokens = [(one_line(str(name)), f"{number:,}") for name, number in (cost.get("tokens") or {}).items()
              if type(number) is int]  # fmt: skip
    source = f" from your {cost['from']}" if cost.get("from") else ""
    return (
        *([("cost", f"{money(float(usd))}{source}")] if isinstance(usd, int | float) else []),
        *((f"{name} tokens", number) for name, number in tokens[:8]),
        *([("time", words_of(int(took)))] if took is not None else []),
    )


def _can_be_judged(overview: Overview) -> bool:
    return overview.job.status.ended and overview.job.seen is None

"""A draft: a job with the choices of a user, checked, before a store has numbered and dated it."""

from __future__ import annotations

from mam.events.topic import default_prefix
from mam.jobs import input_rules
from mam.jobs.continuation import is_conversation_key
from mam.jobs.dependency import check_after
from mam.jobs.record import CHOICES, NO_BROKER, Job
from mam.jobs.status import PENDING
from mam.util.clock import iso_milli

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.jobs.record import Json


HUMAN = "human"
NO_TIMEOUTS = {"timeout_sec": 0, "idle_timeout_sec": 0}
"""For a person, unless a timeout is given."""


def draft_job(
    *,
    job_id: str,
    prompt: str,
    agent: str,
    label: str | None = None,
    timeout_sec: int | None = None,
    idle_timeout_sec: int | None = None,
    artifacts: Sequence[str] = (),
    priority: int = 0,
    due_ms: int | None = None,
    max_retries: int = 3,
    key: str | None = None,
    retry_of: str | None = None,
    continues: str | None = None,
    workdir: str | None = None,
    origin_host: str | None = None,
    after: Sequence[str] = (),
    on_dependency_failure: str = "hold",
    exclusive: str | None = None,
    parent_id: str | None = None,
    depth: int = 0,
    workspace: str = "workdir",
    permissions: str = "edit",
    model: str | None = None,
    on_idle: str = "show",
    retry_on_exit: bool = False,
    validation: Json | None = None,
    repository: Json | None = None,
    inbox: Json | None = None,
    broker: Json | None = None,
    topic_prefix: str | None = None,
    may_ask: bool = True,
    registered_by: str | None = None,
) -> Job:
    """BadInput for a choice that no store accepts. The store adds the number and the times."""
    label = agent if label is None else label
    usual = NO_TIMEOUTS if agent == HUMAN else Job.field_defaults
    timeout_sec = usual["timeout_sec"] if timeout_sec is None else timeout_sec
    idle_timeout_sec = usual["idle_timeout_sec"] if idle_timeout_sec is None else idle_timeout_sec
    return Job(
        job_id=input_rules.check_job_id(job_id),
        status=PENDING,
        created_at="",
        updated_at="",
        prompt=input_rules.check_prompt(prompt),
        agent=input_rules.check_name("agent", agent),
        agent_session=input_rules.check_name("label", label),
        broker=NO_BROKER if broker is None else broker,
        topic_prefix=default_prefix(job_id) if topic_prefix is None else input_rules.check_topic_prefix(topic_prefix),
        timeout_sec=input_rules.check_count("timeout", timeout_sec),
        idle_timeout_sec=input_rules.check_count("idle timeout", idle_timeout_sec),
        expected_artifacts=[input_rules.check_artifact(path) for path in artifacts],
        priority=input_rules.check_count("priority", priority, least=-1000, most=1000),
        due_at=None if due_ms is None else iso_milli(input_rules.check_moment("start time", due_ms)),
        max_retries=input_rules.check_count("number of retries", max_retries, most=1000),
        key=None if key is None else input_rules.check_name("key", key),
        retry_of=retry_of,
        continues=continues,
        workdir=None
        if workdir is None
        else input_rules.check_text("working directory", workdir, input_rules.PATH_LIMIT),
        origin_host=origin_host,
        after=check_after(job_id, after),
        on_dependency_failure=input_rules.check_choice("on_dependency_failure", on_dependency_failure, CHOICES),
        exclusive=None if exclusive is None else input_rules.check_name("exclusive key", exclusive),
        parent_id=parent_id,
        depth=input_rules.check_count("depth", depth),
        workspace=input_rules.check_choice("workspace", workspace, CHOICES),
        permissions=input_rules.check_choice("permissions", permissions, CHOICES),
        model=None if model is None else input_rules.check_model(model),
        on_idle=input_rules.check_choice("on_idle", on_idle, CHOICES),
        retry_on_exit=retry_on_exit,
        validation=validation,
        repository=repository,
        inbox=inbox,
        may_ask=may_ask,
        registered_by=None if registered_by is None else input_rules.check_name("name of a token", registered_by),
        unknown={},
    )


def draft_retry(job: Job, job_id: str) -> Job:
    """A new job with the same work, which names the old one in `retry_of`. It starts from the beginning."""
    return draft_job(
        job_id=job_id,
        prompt=job.prompt,
        agent=job.agent,
        label=job.agent_session,
        timeout_sec=job.timeout_sec,
        idle_timeout_sec=job.idle_timeout_sec,
        priority=job.priority,
        max_retries=job.max_retries,
        retry_of=job.job_id,
        workdir=job.workdir,
        origin_host=job.origin_host,
        after=job.after,
        on_dependency_failure=job.on_dependency_failure,
        exclusive=None if is_conversation_key(job.exclusive) else job.exclusive,
        parent_id=job.parent_id,
        depth=job.depth,
        workspace=job.workspace,
        permissions=job.permissions,
        model=job.model,
        on_idle=job.on_idle,
        retry_on_exit=job.retry_on_exit,
        validation=job.validation,
        repository=job.repository,
        broker=job.broker,
        may_ask=job.may_ask,
        registered_by=job.registered_by,
    ).replace(
        expected_artifacts=job.expected_artifacts,
        topic_prefix=job.topic_prefix.replace(job.job_id, job_id),
        max_losses=job.max_losses,
        unknown=job.unknown,
    )

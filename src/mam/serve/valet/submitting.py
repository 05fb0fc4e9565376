"""Prompts that a client sends become jobs, all of them or none."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from mam.access.jobs import Prompted
from mam.errors import BadInput
from mam.inbox.draft import draft_from_file
from mam.inbox.names import LOCAL_OWNER, PROMPT_SUFFIX, check_name
from mam.inbox.settings import LABEL, Settings, default_agent
from mam.serve.valet.problem import ValetProblem
from mam.serve.valet.targets import find_target
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.access.registry import AuthorizedRegistry
    from mam.config.settings import Config
    from mam.jobs.record import Job, Json
    from mam.serve.valet.targets import ValetTarget

NETWORK_ROOT = ""
"""The `root` of the record field `inbox`: the prompt came over the network, and no file has it."""
_ENDING = ".md"


class Sent(Frozen):
    """A prompt as a client sent it."""

    content: bytes
    name: str | None
    """The name of its file, if it has one."""


def submit(rights: AuthorizedRegistry, config: Config, repo: str, branch: str, sent: Sequence[Sent]) -> list[Json]:
    """Registers a job for each prompt, and returns what names them to the client."""
    if not repo.strip() or not branch.strip():
        raise ValetProblem(400, "repo and branch must not be blank.")
    for one in sent:
        _check_file_name(one.name)
    target = find_target(config, repo.strip(), branch.strip())
    try:
        jobs = rights.register_all([_prompted(one, target, config, rights) for one in sent])
    except BadInput as bad:
        raise ValetProblem(400, str(bad)) from None
    return [_receipt(job, target) for job in jobs]


def _receipt(job: Job, target: ValetTarget) -> Json:
    assert job.inbox is not None
    path = os.path.join(target.inbox_path, os.path.basename(job.inbox["file"]))
    return {"job_id": job.job_id, "inbox_path": path, "created_at": job.created_at}


def _prompted(sent: Sent, target: ValetTarget, config: Config, rights: AuthorizedRegistry) -> Prompted:
    job_id = rights.registry.store.clock.new_id()
    rel = os.path.join(target.target.path, _file_name(sent.name, job_id))
    check_name(rel)
    draft = draft_from_file(sent.content, target.target, rel, _settings(config))
    kept = {name: choice for name, choice in draft.choices.items() if name not in ("inbox", "origin_host")}
    repository = kept.pop("repository", None)
    if repository is not None:
        kept |= {"repo": repository["name"], **{name: repository[name] for name in ("branch", "push", "pull_request")}}
    return Prompted(
        job_id=job_id, prompt=draft.prompt, agent=draft.agent, choices=kept,
        inbox={"root": NETWORK_ROOT, "file": rel, **target.target.as_dict()},
    )  # fmt: skip


def _check_file_name(name: str | None) -> None:
    if name is None:
        return
    bare = name.strip()
    if not bare or os.path.basename(bare) != bare or "\\" in bare or bare.startswith("."):
        raise ValetProblem(400, "filename must be a plain name, without a directory.")
    if not bare.lower().endswith(_ENDING):
        raise ValetProblem(400, f"filename must end in {_ENDING}.")


def _file_name(name: str | None, job_id: str) -> str:
    if name is None:
        stem = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    else:
        stem = name.strip()[: -len(_ENDING)].removesuffix(PROMPT_SUFFIX[: -len(_ENDING)])
    return f"{stem}-{job_id}{PROMPT_SUFFIX}"


def _settings(config: Config) -> Settings:
    """Those of an inbox that has no directory."""
    from mam.bus.settings import broker_to_record

    inbox = config.inbox
    return Settings(
        root=NETWORK_ROOT,
        owner=inbox.get("owner", LOCAL_OWNER),
        agent=default_agent(config, inbox.get("agent")),
        label=inbox.get("label", LABEL),
        permissions=inbox.get("permissions", "edit"),
        max_retries=config.queue.get("max_retries", 3),
        uids=frozenset(),
        jobs_root="",
        push=inbox.get("push", False),
        pull_request=inbox.get("pull_request", False),
        repos=config.repos,
        on_idle=config.on_idle,
        broker=broker_to_record(config.broker),
    )

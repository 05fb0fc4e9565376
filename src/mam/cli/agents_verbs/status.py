"""Record, tmux, process, companion and jobs side by side: id, name, the five, and every drift between them.

`unknown` is what could not be found out, and never taken for dead. Exit 1 when there is a drift.
"""

from __future__ import annotations

from mam.agents.answer import Look
from mam.agents.names import bare_name
from mam.agents.resolve import needed
from mam.agents.status import status_of
from mam.cli.agents_verbs.common import add_whom, answer_of, directory_of
from mam.cli.output import put, put_json_array, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.record import Json
    from mam.agents.status import Status
    from mam.cli.parser import Options, Parser
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_whom(parser)


def run(options: Options) -> int:
    directory = directory_of(options)
    now = directory.clock.now()
    if any(given is not None for given in (options.word, options.id, options.name, options.session)):
        name, answer = answer_of(directory, options)
        record = answer.record if answer.record is not None else needed(answer, name)
        looks = [Look(agent_id=record.agent_id, kind="found", record=record)]
    else:
        looks = list(directory.looks())
    registry = _registry(options)
    found = [_with_jobs(status_of(look, now), registry) for look in looks]
    if options.json:
        put_json_array({**status.as_dict(), "drift": list(status.drift)} for status in found)
    else:
        for status in found:
            put(status.agent_id, status.agent_name, status.record, status.tmux, status.process, status.companion,
                _jobs(status), "; ".join(status.drift) or "-")  # fmt: skip
    return 1 if any(status.drift for status in found) else 0


def _registry(options: Options) -> Registry | None:
    """The jobs, where they can be asked; sessions are shown without them too."""
    from mam.cli.options import registry_of
    from mam.errors import MamError, StoreMissing

    try:
        return registry_of(options)
    except StoreMissing:
        return None
    except MamError as error:
        say(f"jobs are unknown: {error}")
        return None


def _with_jobs(status: Status, registry: Registry | None) -> Status:
    """Jobs that run under a label of this session."""
    from mam.jobs.status import RUNNING
    from mam.stores.port import Query

    if registry is None or status.generation_id is None:
        return status
    name = bare_name(status.agent_name)
    labels = dict.fromkeys((name, status.agent_name, status.agent_id, f"tmux:{status.session}"))
    jobs: list[Json] = [
        {"job_id": job.job_id, "attempt": job.attempt, "label": label}
        for label in labels
        for job in registry.select(Query(statuses=frozenset({RUNNING}), label=label))
    ]
    return status.replace(jobs=tuple(jobs))


def _jobs(status: Status) -> str:
    if status.jobs is None:
        return "unknown"
    return ",".join(str(job["job_id"])[:8] for job in status.jobs) or "-"

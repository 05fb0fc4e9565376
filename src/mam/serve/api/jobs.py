"""Jobs, to read: lists, records, overviews, results, events."""

from __future__ import annotations

from urllib.parse import urlencode

from mam.access.grant import READ, SUBMIT
from mam.access.reading import PAGE_LIMIT
from mam.errors import Refused
from mam.jobs.input_rules import NAME_LIMIT
from mam.jobs.status import Status
from mam.registry.listing import JobFilter, check_filter
from mam.serve.api.shown import job_answer, summary_json
from mam.serve.call import Answer
from mam.serve.route import Param, Route
from mam.serve.schemas import JOB, STATUSES, WAIT_LIMIT, flag, name, ref, several, text, when, whole
from mam.stores.port import Query
from mam.util.human_time import parse_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.serve.call import Call

SEE = (READ, SUBMIT)
"""The scopes that may see jobs: all of them, or its own."""
DEFAULT_LIMIT = 50

FILTERS = (
    Param(name="status", schema=several({"type": "string", "enum": STATUSES}, "", 20),
          meaning="Only these statuses, in the words of `mam list --status`; repeatable."),
    Param(name="label", schema=name(""), meaning="Only jobs with this label."),
    Param(name="agent", schema=name(""), meaning="Only jobs for this agent."),
    Param(name="host", schema=name(""), meaning="Only jobs that ran on this host."),
    Param(name="since", schema=when(""), meaning="Only jobs registered since then: 2h, 3d, 2026-11-15T10:00:00Z."),
    Param(name="search", schema=text(NAME_LIMIT, ""), meaning="Text in the prompt, the result or the reason."),
    Param(name="unseen", schema=flag(""), meaning="Only failures that were neither retried nor seen."),
    Param(name="archived", schema=flag(""), meaning="The jobs that `mam prune` has archived."),
)  # fmt: skip


def filter_of(call: Call) -> JobFilter:
    statuses = call.get("status")
    check_filter(unseen=call.get("unseen", False), archived=call.get("archived", False), statuses=statuses is not None)
    now = call.server.registry.store.clock.now().wall_ms
    since = call.get("since")
    query = Query(
        statuses=None if statuses is None else frozenset(map(Status, statuses)), label=call.get("label"),
        since=None if since is None else parse_since(since, now), below=_below(call.get("cursor")),
    )  # fmt: skip
    return JobFilter(
        query=query, agent=call.get("agent"), host=call.get("host"), search=call.get("search"),
        unseen=call.get("unseen", False), archived=call.get("archived", False),
    )  # fmt: skip


def _below(cursor: str | None) -> int | None:
    return None if cursor is None else int(cursor[1:])


def list_jobs(call: Call) -> Answer:
    page = call.rights.page(filter_of(call), call.get("limit", DEFAULT_LIMIT))
    following = None if page.below is None else f"n{page.below}"
    headers = {}
    if following is not None:
        others = [(key, value) for key, value in call.request.query_params.multi_items() if key != "cursor"]
        query = urlencode([*others, ("cursor", following)])
        headers["link"] = f'<{call.prefix}/api/v1/jobs?{query}>; rel="next"'
    return Answer(body={"jobs": [summary_json(job) for job in page.jobs], "next": following}, headers=headers)


def get_job(call: Call) -> Answer:
    return job_answer(call.rights.get(call.job))


def show_job(call: Call) -> Answer:
    return Answer(body=call.rights.overview(call.job).to_json())


def explain_job(call: Call) -> Answer:
    job, why = call.rights.explain(call.job)
    return Answer(body={"job_id": job.job_id, "status": job.status, "why": why})


def job_events(call: Call) -> Answer:
    events = call.rights.events(call.job)
    since = call.get("since_seq", 0)
    return Answer(body={"events": [event for event in events if event.get("seq", 0) > since]})


def job_result(call: Call) -> Answer:
    job = call.rights.get(call.job)
    if job.result is None:
        raise Refused(why=f"Job {job.job_id} is {job.status} and has no result.")
    return Answer(
        body={
            "job_id": job.job_id,
            "status": job.status,
            "checked": job.checked,
            "host": job.host,
            "result": job.result,
        }
    )


async def wait_for_job(call: Call) -> Answer:
    """Waits in the event loop: no thread is held."""
    hub, server = call.server.hub, call.server
    ends, number = hub.loop.time() + call.get("timeout", 60), hub.last
    job = await server.call(call.rights.get, call.job)
    while not job.status.ended and not hub.is_stopped and (left := ends - hub.loop.time()) > 0:
        number = await hub.wait_for_job(job.job_id, number, left)
        job = await server.call(server.registry.get_exact, job.job_id)
    return job_answer(job)


ROUTES = (
    Route(
        method="GET", path="/jobs", name="list_jobs", summary="List jobs, newest first.", scopes=SEE, handler=list_jobs,
        params=(
            *FILTERS,
            Param(name="limit", schema=whole("", 1, PAGE_LIMIT), meaning=f"Default: {DEFAULT_LIMIT}."),
            Param(name="cursor", schema=text(20, "", pattern="^n[0-9]{1,16}$"), meaning="`next` of the page before."),
        ),
        answer=ref("JobList"), verb="list",
        details="A page may hold fewer jobs than its limit. The list ends where `next` is null.",
    ),
    Route(
        method="GET", path="/jobs/{job}", name="get_job", summary="The record of a job.", scopes=SEE, handler=get_job,
        params=(JOB,), answer=ref("Job"), verb="get",
    ),
    Route(
        method="GET", path="/jobs/{job}/show", name="show_job", scopes=SEE, handler=show_job, params=(JOB,),
        summary="The overview of a job: why it is in its state, result, changes, checks, cost.", answer=ref("Overview"),
        verb="show",
    ),
    Route(
        method="GET", path="/jobs/{job}/explain", name="explain_job", summary="Why a job is in its state.", scopes=SEE,
        handler=explain_job, params=(JOB,), answer=ref("Explanation"), verb="explain",
    ),
    Route(
        method="GET", path="/jobs/{job}/events", name="job_events", summary="The events of a job.", scopes=SEE,
        handler=job_events, answer=ref("EventList"), verb="logs",
        params=(JOB, Param(name="since_seq", schema=whole("", 0, 2**53), meaning="Only events after this number.")),
    ),
    Route(
        method="GET", path="/jobs/{job}/result", name="job_result", summary="The result of a completed job.",
        scopes=SEE, handler=job_result, params=(JOB,), answer=ref("Result"), verb="result",
    ),
    Route(
        method="GET", path="/jobs/{job}/wait", name="wait_for_job", scopes=SEE, handler=wait_for_job,
        summary="The record of a job when it has ended, or as it is after the timeout.", answer=ref("Job"), verb="wait",
        params=(JOB, Param(name="timeout", schema=whole("", 0, WAIT_LIMIT), meaning="Seconds; 60 by default.")),
    ),
)  # fmt: skip

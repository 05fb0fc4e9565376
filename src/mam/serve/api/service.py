"""The service itself: who the caller is, workers, sessions, pauses, figures, health."""

from __future__ import annotations

from mam import __version__
from mam.access.grant import ADMIN, READ, SCOPES
from mam.errors import MamError, Refused
from mam.jobs.pause import draft_pause
from mam.jobs.workers import DRAIN, STOP, holder_json
from mam.serve.call import Answer
from mam.serve.route import ANYBODY, PATH, Param, Route
from mam.serve.schemas import REASON, name, record, ref, several, when
from mam.util.human_time import parse_when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.lookup import Lookup
    from mam.jobs.record import Json
    from mam.serve.call import Call
    from mam.util.clock import Moment

PAUSE = record(
    {
        "agent": name("Only jobs for this agent."),
        "label": name("Only jobs with this label."),
        "until": when("When it ends: +2h, 90s, 2026-11-15T10:00:00Z; default: never."),
        "reason": {**REASON, "maxLength": 256, "pattern": name("")["pattern"]},
    }
)
WORKER = Param(name="worker", place=PATH, schema=name(""), is_required=True, meaning="The name of a live worker.")


def me(call: Call) -> Answer:
    viewer = call.viewer
    return Answer(body={"name": viewer.name, "grant": viewer.grant.to_json(), "session": viewer.session is not None})


def health(_call: Call) -> Answer:
    return Answer(body={"status": "ok", "version": __version__})


def ready(call: Call) -> Answer:
    """Whether the store answers."""
    try:
        call.server.registry.store.end_offset()
    except (MamError, OSError):
        return Answer(body={"status": "the store does not answer"}, status=503)
    return Answer(body={"status": "ok"})


def workers(call: Call) -> Answer:
    return Answer(body={"workers": [holder_json(holder) for holder in call.rights.holders()]})


def drain(call: Call) -> Answer:
    return _ask_worker(call, DRAIN)


def stop(call: Call) -> Answer:
    return _ask_worker(call, STOP)


def _ask_worker(call: Call, what: str) -> Answer:
    worker = call.rights.ask_worker(call.given["worker"], what)
    return Answer(body={"worker": worker.name, "asked": what}, status=202)


def sessions(call: Call) -> Answer:
    if call.server.sessions is None:
        return Answer(body={"sessions": []})
    directory = call.server.sessions()
    now = directory.clock.now()
    return Answer(body={"sessions": [_session(lookup, now) for lookup in directory.read_all()]})


def _session(lookup: Lookup, now: Moment) -> Json:
    """As `mam agents list`, without the paths and the environment of its manifest."""
    from mam.agents.activity import session_state
    from mam.agents.lookup import resolve_lookup

    found = resolve_lookup(lookup, now)
    fields: Json = {
        "agent_id": lookup.agent_id,
        "answer": found.kind,
        "reason": found.reason,
        "name": None,
        "state": None,
    }
    known = lookup.record
    if known is None:
        return fields
    state = session_state(known, now.wall_ms).to_json()
    return {**fields, "name": known.agent_name, "tool": known.identity.tool, "state": state}


def pauses(call: Call) -> Answer:
    now = call.server.registry.store.clock.now()
    return Answer(body={"pauses": [pause.as_dict() for pause in call.rights.pauses() if pause.is_active(now)]})


def pause(call: Call) -> Answer:
    now, body = call.server.registry.store.clock.now(), call.body
    until = None if body.get("until") is None else parse_when(body["until"], now.wall_ms, "until")
    if until is not None and until <= now.wall_ms:
        raise Refused(why="The end of that pause has passed already.")
    made = draft_pause(body.get("agent"), body.get("label"), until, body.get("reason"), now)
    call.rights.pause(made)
    return Answer(body=made.as_dict(), status=201)


def resume(call: Call) -> Answer:
    agent, label = call.get("agent"), call.get("label")
    if not call.rights.resume(agent, label):
        raise Refused(why="Nothing with this agent and label is paused; GET /pauses lists the pauses.")
    return Answer(status=204)


def stats(call: Call) -> Answer:
    from mam.stats.report import KINDS, PERIOD, make_report

    call.rights.counts()  # which needs the scope
    store = call.server.registry.store
    report = make_report(store, call.get("since", PERIOD), call.get("by", list(KINDS)), lambda _count: None)
    return Answer(body=report.to_json(store.address))


ROUTES = (
    Route(
        method="GET", path="/me", name="me", summary="Who calls, and what it may do.", scopes=SCOPES, handler=me,
        answer=ref("Viewer"),
    ),
    Route(
        method="GET", path="/health", name="health", summary="Whether the server runs.", scopes=(ANYBODY,),
        handler=health, answer=ref("Health"),
    ),
    Route(
        method="GET", path="/ready", name="ready", summary="Whether its store answers.", scopes=(ANYBODY,),
        handler=ready, answer=ref("Health"), others={503: "The store does not answer."},
    ),
    Route(
        method="GET", path="/workers", name="list_workers", scopes=(READ,), handler=workers, verb="workers",
        summary="The live workers, and other owners of claims, with the jobs that they hold.", answer=ref("WorkerList"),
    ),
    Route(
        method="POST", path="/workers/{worker}/drain", name="drain_worker", scopes=(ADMIN,), handler=drain,
        summary="Ask a worker to finish its jobs and exit.", params=(WORKER,), status=202, answer=ref("WorkerAsked"),
        verb="workers",
    ),
    Route(
        method="POST", path="/workers/{worker}/stop", name="stop_worker", scopes=(ADMIN,), handler=stop,
        summary="Ask a worker to release its jobs and exit.", params=(WORKER,), status=202, answer=ref("WorkerAsked"),
        verb="workers",
    ),
    Route(
        method="GET", path="/sessions", name="list_sessions", scopes=(READ,), handler=sessions, verb="agents",
        summary="The live sessions of agents on this host.", answer=ref("SessionList"),
    ),
    Route(
        method="GET", path="/pauses", name="list_pauses", summary="What is paused.", scopes=(READ,), handler=pauses,
        answer=ref("PauseList"), verb="pause",
    ),
    Route(
        method="POST", path="/pauses", name="pause", scopes=(ADMIN,), handler=pause, body=PAUSE, needs_body=False,
        summary="Stop the claims of an agent, a label or all jobs.", status=201, answer=ref("Pause"), verb="pause",
    ),
    Route(
        method="DELETE", path="/pauses", name="resume", summary="End a pause.", scopes=(ADMIN,), handler=resume,
        status=204, verb="resume",
        params=(
            Param(name="agent", schema=name(""), meaning="The agent of the pause."),
            Param(name="label", schema=name(""), meaning="The label of the pause."),
        ),
    ),
    Route(
        method="GET", path="/stats", name="stats", summary="Throughput, times, success and cost.", scopes=(READ,),
        handler=stats, answer=ref("Stats"), verb="stats",
        params=(
            Param(name="since", schema=when(""), meaning="Only jobs that ended since then; by default 30d."),
            Param(name="by", schema=several({"type": "string", "enum": ["label", "agent", "day"]}, ""),
                  meaning="The groups; by default all three."),
        ),
    ),
)  # fmt: skip

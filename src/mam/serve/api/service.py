"""The service itself: who the caller is, workers, pauses, health."""

from __future__ import annotations

from mam import __version__
from mam.access.grant import READ, SCOPES
from mam.errors import MamError
from mam.jobs.workers import holder_json
from mam.serve.call import Answer
from mam.serve.route import ANYBODY, Route
from mam.serve.schemas import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.serve.call import Call


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
        return Answer(body={"status": "store not available"}, status=503)
    return Answer(body={"status": "ok"})


def workers(call: Call) -> Answer:
    return Answer(body={"workers": [holder_json(holder) for holder in call.rights.holders()]})


def pauses(call: Call) -> Answer:
    return Answer(body={"pauses": [pause.as_dict() for pause in call.rights.pauses()]})


ROUTES = (
    Route(
        method="GET",
        path="/me",
        name="me",
        summary="Who calls, and what it may do.",
        scopes=SCOPES,
        handler=me,
        answer=ref("Viewer"),
    ),
    Route(
        method="GET",
        path="/health",
        name="health",
        summary="Whether the server runs.",
        scopes=(ANYBODY,),
        handler=health,
        answer=ref("Health"),
    ),
    Route(
        method="GET",
        path="/ready",
        name="ready",
        summary="Whether its store answers.",
        scopes=(ANYBODY,),
        handler=ready,
        answer=ref("Health"),
        others={503: "The store does not answer."},
    ),
    Route(
        method="GET",
        path="/workers",
        name="list_workers",
        scopes=(READ,),
        handler=workers,
        verb="workers",
        summary="The live workers, and other owners of claims, with the jobs that they hold.",
        answer=ref("WorkerList"),
    ),
    Route(
        method="GET",
        path="/pauses",
        name="list_pauses",
        summary="What is paused.",
        scopes=(READ,),
        handler=pauses,
        answer=ref("PauseList"),
        verb="pause",
    ),
)

"""Live events of all jobs (SSE), from any position in the journal."""

from __future__ import annotations

from mam.access.grant import READ
from mam.errors import BadInput
from mam.serve.api.jobs import SEE
from mam.serve.hub import parse_position
from mam.serve.route import HEADER, Param, Route
from mam.serve.schemas import JOB_PATTERN, STATUSES, flag, name, ref, several, text
from mam.serve.sse import ChangeFilter, event_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.responses import Response

    from mam.serve.call import Call

NOW, START = "now", "start"
_POSITION = text(150, "", pattern=r"^(now|start|[A-Za-z0-9_-]{1,128}-[0-9]{1,18})$")


async def events(call: Call) -> Response:
    """A reader that reconnects sends the id of the last event that it got, so it misses none and sees none twice."""
    text_ = call.get("Last-Event-ID") or call.get("after", NOW)
    hub = call.server.hub
    if text_ == NOW:
        epoch, number = hub.epoch, hub.last
    elif text_ == START:
        epoch, number = hub.epoch, 0
    else:
        found = parse_position(text_)
        if found is None:
            raise BadInput(why=f"{text_[:60]!r} is not a position: give the id of an event, `start` or `now`")
        epoch, number = found
    wanted = ChangeFilter(
        jobs=frozenset(call.get("job", ())), labels=frozenset(call.get("label", ())),
        agents=frozenset(call.get("agent", ())), events=frozenset(call.get("event", ())),
        statuses=frozenset(call.get("status", ())),
    )  # fmt: skip
    return event_stream(
        call, epoch, number, wanted, sees_all=call.viewer.may(READ), follows=call.get("follow", True)
    )  # fmt: skip


ROUTES = (
    Route(
        method="GET", path="/events", name="events", scopes=SEE, handler=events, media_type="text/event-stream",
        summary="A stream of everything that happens, as server-sent events.", answer=ref("Change"), verb="subscribe",
        params=(
            Param(name="after", schema=_POSITION, meaning="The position to begin after; `now` by default."),
            Param(name="Last-Event-ID", schema=_POSITION, place=HEADER, meaning="The id of the last event received."),
            Param(name="follow", schema=flag(""), meaning="`false` ends the stream at the current end of the journal."),
            Param(name="job", schema=several(text(64, "", pattern=JOB_PATTERN), ""), meaning="Only these jobs."),
            Param(name="label", schema=several(name(""), ""), meaning="Only jobs with these labels."),
            Param(name="agent", schema=several(name(""), ""), meaning="Only jobs for these agents."),
            Param(name="event", schema=several(text(60, ""), ""), meaning="Only entries with these events."),
            Param(name="status", schema=several({"type": "string", "enum": STATUSES}, ""),
                  meaning="Only changes to these statuses."),
        ),
        details="The id of each event is a position in the journal. A comment every 15 seconds keeps the connection"
        " open. The server drops a reader that does not read; it reconnects with `Last-Event-ID` and misses nothing."
        " The event `reset` says that the journal is another one, and that its entries follow from the beginning.",
    ),
)  # fmt: skip

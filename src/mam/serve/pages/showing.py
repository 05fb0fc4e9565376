"""The pages that show something. Each reads with the rights of its viewer and changes nothing."""

from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse, Response

from mam.errors import BadInput
from mam.serve.pages import artifacts, lists, new_jobs
from mam.serve.pages import health as health_view
from mam.serve.pages import jobs as job_view
from mam.serve.pages.actions import actions_of
from mam.serve.pages.conversations import output_size
from mam.serve.pages.needs_me import needs_me
from mam.serve.pages.notifications import notifications_page
from mam.serve.pages.records import record_page
from mam.serve.pages.statistics import HEADINGS, PERIODS, statistics_page
from mam.serve.pages.workers import workers_page
from mam.util.clock import iso_second

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from mam.serve.pages.page_call import Note, PageCall
    from mam.serve.server import Server

LOOKED_COOKIE = "mam-looked"


def home(call: PageCall, note: Note | None = None, status: int = 200) -> Response:
    view = needs_me(call.registry)
    return call.page("needs_me.html", "home", status=status, note=note, view=view, waiting=view.count)


def jobs(call: PageCall) -> Response:
    """The cookie remembers when this browser last opened the list; a refresh by script does not count as a look."""
    filters = lists.parse_filters(call.request.query_params)
    looked = call.request.cookies.get(LOOKED_COOKIE, "").partition("~")
    view = lists.job_list(call.registry, filters, looked[0] or None)
    answer = call.page("jobs.html", "jobs", view=view, states=lists.STATES, find=filters.search)
    if not call.is_live and not filters.is_any:
        now = iso_second(call.registry.registry.store.clock.now().wall_ms)
        path = call.server.settings.path_prefix or "/"
        answer.set_cookie(LOOKED_COOKIE, now, max_age=90 * 86_400, path=path, samesite="lax", httponly=True)
    return answer


def job(call: PageCall, note: Note | None = None, status: int = 200) -> Response:
    until = call.query("until")
    end = int(until) if until.isascii() and until.isdigit() and len(until) < 16 else None
    found = call.registry.get(call.path("job"))
    view = job_view.job_page(
        call.registry, found.job_id, output_end=end, file=call.query("file") or None, with_diff=not call.is_live
    )
    size = 0 if view.window is None else view.window.size
    version_text = job_view.conversation_version(found, size)
    return call.page("job.html", "jobs", status=status, note=note, view=view, version=version_text, size=size)


def version(call: PageCall) -> Response:
    """For a script that waits for new output; `since` is the size that its page shows."""
    found, since = call.registry.get(call.path("job")), call.query("since")
    known = int(since) if since.isascii() and since.isdigit() and len(since) < 16 else 0
    return PlainTextResponse(job_view.conversation_version(found, output_size(call.registry, found, known)))


def record(call: PageCall) -> Response:
    return call.page("record.html", "jobs", view=record_page(call.registry, call.path("job")))


def edit(call: PageCall, problem: str = "", status: int = 200) -> Response:
    found = call.registry.get(call.path("job"))
    action = actions_of(found, call.viewer)["edit"]
    known = {"prompt": found.prompt, "label": found.agent_session, "priority": str(found.priority), "at": ""}
    values = {**known, **call.values()}
    return call.page(
        "edit.html",
        "jobs",
        status=status,
        job=found,
        short=found.job_id[:8],
        action=action,
        values=values,
        problem=problem,
    )


def artifact(call: PageCall) -> Response:
    found = call.registry.get(call.path("job"))
    path = call.path("path")
    view = artifacts.preview_of(call.registry, found, path)
    return call.page("artifact.html", "jobs", view=view, job_id=found.job_id, short=found.job_id[:8], path=path)


def download(call: PageCall) -> Response:
    """The file itself, always to save and never to show: what an agent wrote is no page of mam."""
    found = call.registry.get(call.path("job"))
    path = call.path("path")
    data = artifacts.content_of(call.registry, found, path)
    name = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "_" for one in path.rpartition("/")[2])
    headers = {"content-disposition": f'attachment; filename="{name or "artifact"}"'}
    return Response(data, headers=headers, media_type="application/octet-stream")


def new_job(call: PageCall, problem: str = "", status: int = 200, preview: str = "") -> Response:
    given = call.values() or dict(call.request.query_params)
    form = new_jobs.new_job_form(call.registry, given, problem)
    return call.page(
        "new_job.html", "jobs", status=status, form=form, preview=preview, command=new_jobs.command_of(form.values)
    )


def workers(call: PageCall) -> Response:
    return call.page("workers.html", "workers", view=workers_page(call.registry, call.server.sessions))


def statistics(call: PageCall) -> Response:
    days = PERIODS.get(call.query("days") or "30")
    if days is None:
        raise BadInput(why=f"the statistics cover {', '.join(PERIODS)} days")
    view = statistics_page(call.registry, days)
    return call.page("statistics.html", "statistics", view=view, headings=HEADINGS, periods=PERIODS)


def health(call: PageCall) -> Response:
    return call.page("health.html", view=health_view.health_page(call.registry, call.server))


def tokens(call: PageCall) -> Response:
    return call.page("tokens.html", view=health_view.tokens_page(call.registry))


def notifications(call: PageCall, note: Note | None = None) -> Response:
    host = call.request.headers.get("host", "")
    view = notifications_page(call.registry, call.server, host)
    return call.page("notifications.html", view=view, note=note)


def help_page(call: PageCall) -> Response:
    return call.page("help.html")


def not_found(call: PageCall) -> Response:
    from mam.serve.problems import Problem, facts_of

    facts = facts_of(Problem(404, "This server has no such page. Perhaps the address is incomplete."))
    return call.page("problem.html", status=404, facts=facts, back="/")


def manifest(server: Server) -> Callable[[Request], object]:
    """What a phone needs to install the page."""
    prefix = server.settings.path_prefix
    body = {
        "name": "mam", "short_name": "mam", "start_url": f"{prefix}/", "scope": f"{prefix}/", "display": "standalone",
        "background_color": "#0e1014", "theme_color": "#16191f",
        "icons": [
            {"src": f"{prefix}/static/icon-192.png", "sizes": "192x192", "type": "image/png"},
            {"src": f"{prefix}/static/icon.svg", "sizes": "any", "type": "image/svg+xml"},
        ],
    }  # fmt: skip

    async def answer(_request: Request) -> Response:
        return JSONResponse(body, media_type="application/manifest+json")

    return answer


async def robots(_request: Request) -> Response:
    return PlainTextResponse("User-agent: *\nDisallow: /\n")

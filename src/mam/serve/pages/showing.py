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

    from mam.serve.pages.visit import Note, Visit
    from mam.serve.server import Server

LOOKED_COOKIE = "mam-looked"


def home(visit: Visit, note: Note | None = None, status: int = 200) -> Response:
    view = needs_me(visit.registry)
    return visit.page("needs_me.html", "home", status=status, note=note, view=view, waiting=view.count)


def jobs(visit: Visit) -> Response:
    """The cookie remembers when this browser last opened the list; a refresh by script does not count as a look."""
    filters = lists.parse_filters(visit.request.query_params)
    looked = visit.request.cookies.get(LOOKED_COOKIE, "").partition("~")
    view = lists.job_list(visit.registry, filters, looked[0] or None)
    answer = visit.page("jobs.html", "jobs", view=view, states=lists.STATES, find=filters.search)
    if not visit.is_live and not filters.is_any:
        now = iso_second(visit.registry.registry.store.clock.now().wall_ms)
        path = visit.server.settings.path_prefix or "/"
        answer.set_cookie(LOOKED_COOKIE, now, max_age=90 * 86_400, path=path, samesite="lax", httponly=True)
    return answer


def job(visit: Visit, note: Note | None = None, status: int = 200) -> Response:
    until = visit.query("until")
    end = int(until) if until.isascii() and until.isdigit() and len(until) < 16 else None
    found = visit.registry.get(visit.path("job"))
    view = job_view.job_page(
        visit.registry, found.job_id, output_end=end, file=visit.query("file") or None, with_diff=not visit.is_live
    )
    size = 0 if view.window is None else view.window.size
    version_text = job_view.conversation_version(found, size)
    return visit.page("job.html", "jobs", status=status, note=note, view=view, version=version_text, size=size)


def version(visit: Visit) -> Response:
    """For a script that waits for new output; `since` is the size that its page shows."""
    found, since = visit.registry.get(visit.path("job")), visit.query("since")
    known = int(since) if since.isascii() and since.isdigit() and len(since) < 16 else 0
    return PlainTextResponse(job_view.conversation_version(found, output_size(visit.registry, found, known)))


def record(visit: Visit) -> Response:
    return visit.page("record.html", "jobs", view=record_page(visit.registry, visit.path("job")))


def edit(visit: Visit, problem: str = "", status: int = 200) -> Response:
    found = visit.registry.get(visit.path("job"))
    action = actions_of(found, visit.viewer)["edit"]
    known = {"prompt": found.prompt, "label": found.agent_session, "priority": str(found.priority), "at": ""}
    values = {**known, **visit.values()}
    return visit.page(
        "edit.html",
        "jobs",
        status=status,
        job=found,
        short=found.job_id[:8],
        action=action,
        values=values,
        problem=problem,
    )


def artifact(visit: Visit) -> Response:
    found = visit.registry.get(visit.path("job"))
    path = visit.path("path")
    view = artifacts.preview_of(visit.registry, found, path)
    return visit.page("artifact.html", "jobs", view=view, job_id=found.job_id, short=found.job_id[:8], path=path)


def download(visit: Visit) -> Response:
    """The file itself, always to save and never to show: what an agent wrote is no page of mam."""
    found = visit.registry.get(visit.path("job"))
    path = visit.path("path")
    data = artifacts.content_of(visit.registry, found, path)
    name = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "_" for one in path.rpartition("/")[2])
    headers = {"content-disposition": f'attachment; filename="{name or "artifact"}"'}
    return Response(data, headers=headers, media_type="application/octet-stream")


def new_job(visit: Visit, problem: str = "", status: int = 200, preview: str = "") -> Response:
    given = visit.values() or dict(visit.request.query_params)
    form = new_jobs.new_job_form(visit.registry, given, problem)
    return visit.page(
        "new_job.html", "jobs", status=status, form=form, preview=preview, command=new_jobs.command_of(form.values)
    )


def workers(visit: Visit) -> Response:
    return visit.page("workers.html", "workers", view=workers_page(visit.registry, visit.server.sessions))


def statistics(visit: Visit) -> Response:
    days = PERIODS.get(visit.query("days") or "30")
    if days is None:
        raise BadInput(why=f"the statistics cover {', '.join(PERIODS)} days")
    view = statistics_page(visit.registry, days)
    return visit.page("statistics.html", "statistics", view=view, headings=HEADINGS, periods=PERIODS)


def health(visit: Visit) -> Response:
    return visit.page("health.html", view=health_view.health_page(visit.registry, visit.server))


def tokens(visit: Visit) -> Response:
    return visit.page("tokens.html", view=health_view.tokens_page(visit.registry))


def notifications(visit: Visit, note: Note | None = None) -> Response:
    host = visit.request.headers.get("host", "")
    view = notifications_page(visit.registry, visit.server, host)
    return visit.page("notifications.html", view=view, note=note)


def help_page(visit: Visit) -> Response:
    return visit.page("help.html")


def not_found(visit: Visit) -> Response:
    from mam.serve.problems import Problem, facts_of

    facts = facts_of(Problem(404, "This server has no such page. Perhaps the address is incomplete."))
    return visit.page("problem.html", status=404, facts=facts, back="/")


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

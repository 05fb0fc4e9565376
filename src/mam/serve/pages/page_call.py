"""One request of a person's browser: who it is, what the form holds, and how a page is answered.

A request without a log-in is sent to the log-in and comes back. Every form carries the token of its session.
"""

from __future__ import annotations

from urllib.parse import parse_qs, quote

from starlette.responses import RedirectResponse, Response

from mam.access.grant import ADMIN, ANSWER
from mam.errors import BadInput, MamError, NotAllowed
from mam.serve.auth import viewer_of
from mam.serve.login import is_own_form
from mam.serve.pages.environment import render
from mam.serve.problems import facts_of
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from mam.access.registry import AuthorizedRegistry
    from mam.access.viewer import Viewer
    from mam.serve.server import Server

    Handler = Callable[["PageCall"], Response]

FIELDS_MOST = 2_000
LIVE_HEADER = "x-mam-live"
"""A script asks for a page again with it; what only changes on a visit is left out then."""


class Note(Frozen):
    """What happened to the last act, on top of a page."""

    look: str
    text: str
    command: str = ""
    path: str = ""
    link: str = ""
    """Where to go on, and its words."""


class PageCall:
    def __init__(self, server: Server, request: Request, viewer: Viewer, fields: dict[str, list[str]]) -> None:
        self.server = server
        self.request = request
        self.viewer = viewer
        self.registry: AuthorizedRegistry = server.rights_of(viewer)
        self.fields = fields

    @property
    def is_live(self) -> bool:
        return LIVE_HEADER in self.request.headers

    def field(self, name: str) -> str:
        return self.fields.get(name, [""])[0]

    def values(self) -> dict[str, str]:
        return {name: texts[0] for name, texts in self.fields.items()}

    def path(self, name: str) -> str:
        value: str = self.request.path_params[name]
        return value

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def page(
        self, template: str, here: str = "", *, status: int = 200, note: Note | None = None, **values: object
    ) -> Response:
        from mam.serve.pages.waiting import waiting_count

        if "waiting" not in values:
            values["waiting"] = waiting_count(self.registry)
        return render(
            self.server, self.request, template, status=status, here=here, viewer=self.viewer,
            note=note or done_note(self), can_answer=self.viewer.may(ANSWER),
            is_admin=self.viewer.may(ADMIN), events_url=f"{self.server.settings.path_prefix}/api/v1/events", **values,
        )  # fmt: skip

    def go(self, path: str) -> Response:
        """After an act: the browser gets the page by itself, so that a reload repeats nothing."""
        return RedirectResponse(f"{self.server.settings.path_prefix}{own_path(path)}", 303)

    def back(self, otherwise: str, **done: str) -> Response:
        """To the page that sent the form, which then says what was done."""
        target = own_path(self.field("back") or otherwise)
        bare = target.partition("#")[0]
        words = "&".join(f"{name}={quote(value, safe='')}" for name, value in done.items())
        return self.go(f"{bare}{'&' if '?' in bare else '?'}{words}" if words else target)


def page_endpoint(server: Server, handler: Handler) -> Callable[[Request], object]:
    """The endpoint of a page that only shows something."""

    async def endpoint(request: Request) -> Response:
        return await server.call(_answer, server, request, handler, None)

    return endpoint


def form_endpoint(server: Server, handler: Handler) -> Callable[[Request], object]:
    """The endpoint of a form."""

    async def endpoint(request: Request) -> Response:
        if await server.call(viewer_of, server, request) is None:
            return _to_login(server, request)  # before the body, which may be large
        data = await request.body()
        return await server.call(_answer, server, request, handler, data)

    return endpoint


def _answer(server: Server, request: Request, handler: Handler, data: bytes | None) -> Response:
    viewer = viewer_of(server, request)
    if viewer is None:
        return _to_login(server, request)
    call = PageCall(server, request, viewer, {})
    try:
        if data is not None:
            call.fields = _parsed(request, data)
            if viewer.session is not None and not is_own_form(server, request, call.field("csrf")):
                raise NotAllowed(
                    who=viewer.label, what="send this form", why=": it is older than your log-in. Reload the page"
                )
        return handler(call)
    except (MamError, OSError) as error:
        return problem_page(call, error)


def problem_page(call: PageCall, error: Exception) -> Response:
    """An error as a page that helps: what happened, and where to go on."""
    facts = facts_of(error)
    return call.page("problem.html", status=facts.status, facts=facts, back=own_path(call.field("back") or "/"))


def _to_login(server: Server, request: Request) -> Response:
    prefix = server.settings.path_prefix
    if LIVE_HEADER in request.headers:
        return Response(status_code=401)
    path = request.url.path.removeprefix(prefix) or "/"
    target = f"{path}?{request.url.query}" if request.url.query else path
    is_page = request.method == "GET" and target != "/"
    return RedirectResponse(f"{prefix}/login{f'?next={quote(target)}' if is_page else ''}", 303)


def _parsed(request: Request, data: bytes) -> dict[str, list[str]]:
    if not data:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadInput(why="a form is sent as application/x-www-form-urlencoded")
    try:
        return parse_qs(data.decode(), keep_blank_values=True, max_num_fields=FIELDS_MOST)
    except ValueError:
        raise BadInput(why=f"the form is not readable, or has more than {FIELDS_MOST:,} fields") from None


def own_path(target: str) -> str:
    """A path of this server, never another host."""
    is_own = target.startswith("/") and not target.startswith("//") and "\\" not in target and target.isprintable()
    return target if is_own and len(target) <= 2_000 else "/"


_DONE = {
    "cancel": "cancelled", "retry": "registered again", "seen": "marked as seen", "edit": "changed",
    "continue": "continued; this is the new job", "review": "sent back with your review; this is the new job",
    "new": "registered", "allow": "allowed once", "deny": "denied", "always": "allowed for the rest of this job",
    "answer": "answered", "drain": "asked to finish its jobs and exit", "stop": "asked to stop",
    "stop_session": "stopped", "pause": "paused", "resume": "resumed", "subscribe": "notified from now on",
    "apply": "applied to the checkout in which the job was registered",
    "remove": "removed; this browser is not notified any more",
}  # fmt: skip


def done_note(call: PageCall) -> Note | None:
    """The address of the page says in fixed words what was done; nothing of it is shown as it is."""
    verb, count = call.query("done"), call.query("count")
    if verb not in _DONE:
        return None
    if count.isascii() and count.isdigit() and len(count) < 6:
        failed = call.query("failed")
        rest = f"; {int(failed):,} could not be" if failed.isascii() and failed.isdigit() and len(failed) < 6 else ""
        jobs = "job" if count == "1" else "jobs"
        return Note(look="bad" if rest else "ok", text=f"{int(count):,} {jobs} {_DONE[verb]}{rest}.")
    path, link = ("/jobs/new", "Register another one") if verb == "new" else ("", "")
    return Note(look="ok", text=f"{_DONE[verb][0].upper()}{_DONE[verb][1:]}.", path=path, link=link)

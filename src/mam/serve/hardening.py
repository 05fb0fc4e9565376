"""Rules for every request, before any route: the host that it names, where it comes from, its size; and the headers of
every answer."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders

from mam.serve.problems import Problem, facts_of, problem_response
from mam.serve.settings import BODY_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mam.serve.settings import ServeSettings

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
"""A route that sets one of them keeps its own."""


class Hardening:
    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app = app
        self._settings = settings
        self._hosts = allowed_hosts(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _below_prefix(scope, self._settings.path_prefix)

        async def send_hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if self._settings.is_https:
                    headers.setdefault("strict-transport-security", "max-age=31536000")
            await send(message)

        try:
            self._check(scope)
        except Problem as problem:
            await problem_response(facts_of(problem), self._settings.path_prefix)(scope, receive, send_hardened)
            return
        await self._app(scope, _limited(receive), send_hardened)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if len(headers.getlist("host")) > 1:
            raise Problem(400, "The request names two hosts.")
        if not self._is_own_host(host):
            why = f"This server does not answer for the host {host[:80]!r}; `mam serve --public-url` names another one."
            raise Problem(421, why)
        if scope["method"] not in SAFE_METHODS:
            self._check_origin(headers, host)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise Problem(400, "content-length is not a number.")
        if int(length) > BODY_LIMIT:
            raise Problem(413, f"The body has {int(length):,} bytes; at most {BODY_LIMIT:,} are taken.")

    def _is_own_host(self, host: str) -> bool:
        """A page of another site cannot reach this server under its own name (DNS rebinding). It can not pretend to be
        an address either: a browser sends the name that it looked up."""
        return host in self._hosts or (self._settings.is_wildcard and _is_address(host))

    def _check_origin(self, headers: Headers, host: str) -> None:
        """Only pages of this server may change something with the cookie of a browser. Programs send neither header."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in ("same-origin", "none"):
            raise Problem(403, "This request comes from another site.", kind="CrossSite")
        if origin is not None and not self._is_own_origin(origin, host):
            why = f"This request comes from {origin[:80]}, which is not this server; `--public-url` names its address."
            raise Problem(403, why, kind="CrossSite")
        if site is None and origin is None and "cookie" in headers and "authorization" not in headers:
            raise Problem(403, "A request with a cookie must say where it comes from (Origin).", kind="CrossSite")

    def _is_own_origin(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin.lower())
        except ValueError:
            return False
        if self._settings.public_url is not None and origin.lower() == _origin_of(self._settings.public_url):
            return True
        return parts.scheme == ("https" if self._settings.is_tls else "http") and parts.netloc == host


def allowed_hosts(settings: ServeSettings) -> frozenset[str]:
    """What the Host header of a request to this server may be."""
    names = ["localhost", "127.0.0.1", "[::1]"]
    if not settings.is_wildcard:
        names.append(f"[{settings.host}]" if ":" in settings.host else settings.host.lower())
    usual = 443 if settings.is_tls else 80
    hosts = {f"{name}:{settings.port}" for name in names} | set(names if settings.port == usual else ())
    if settings.public_url is not None:
        origin = urlsplit(_origin_of(settings.public_url))
        hosts |= {origin.netloc, f"{origin.hostname}:{origin.port or (443 if origin.scheme == 'https' else 80)}"}
    if settings.behind_proxy:
        hosts |= set(names)  # a proxy may leave out the port
    return frozenset(hosts)


def _origin_of(url: str) -> str:
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc}"


def _is_address(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _below_prefix(scope: Scope, prefix: str) -> Scope:
    """A proxy may have removed the prefix, or may have left two slashes where it was."""
    path = scope["path"]
    bare = path[len(prefix) :] if prefix and (path == prefix or path.startswith(f"{prefix}/")) else path
    bare = f"/{bare.lstrip('/')}"
    return {**scope, "path": f"{prefix}{bare}", "root_path": prefix}


def _limited(receive: Receive) -> Receive:
    size = 0

    async def receive_limited() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > BODY_LIMIT:
                raise Problem(413, f"The body has more than {BODY_LIMIT:,} bytes.")
        return message

    return receive_limited

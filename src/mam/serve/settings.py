"""How a server listens and is reached, and the limits that it sets. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from mam.errors import BadInput
from mam.jobs.input_rules import TEXT_LIMIT
from mam.util.frozen import Frozen
from mam.util.hosts import is_loopback

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8626

BODY_LIMIT = 2 * TEXT_LIMIT + (1 << 16)
"""Bytes of a request: the longest prompt, also if half of its letters are escaped."""
HEADER_LIMIT = 1 << 16
CONNECTION_LIMIT = 1024
HEADER_SECONDS = 15.0
"""Until the headers of a request are complete."""
BODY_SECONDS = 60.0
KEEP_ALIVE_SECONDS = 75
DRAIN_SECONDS = 10
THREADS = 16
"""Calls of the registry at once. Requests that wait for something hold no thread."""

_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - to recognize them


class ServeSettings(Frozen):
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0: the system chooses one."""
    tls_cert: str | None = None
    tls_key: str | None = None
    path_prefix: str = ""
    """Begins with / and does not end with it; empty at the root."""
    public_url: str | None = None
    """The address at which others reach the server, without a / at the end."""
    behind_proxy: bool = False

    @property
    def is_tls(self) -> bool:
        return self.tls_cert is not None

    @property
    def is_wildcard(self) -> bool:
        return self.host in _WILDCARDS

    @property
    def local_url(self) -> str:
        """The address on this host."""
        host = DEFAULT_HOST if self.is_wildcard else self.host
        host = f"[{host}]" if ":" in host else host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.path_prefix}"

    @property
    def url(self) -> str:
        return self.public_url or self.local_url

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the server over https, so that a cookie can be limited to that."""
        return self.url.startswith("https://")

    @property
    def contact(self) -> str:
        """How push services reach the one who sends to them; they ask for an https address or one for mail."""
        return self.url if self.is_https else f"mailto:mam@{self.host if not self.is_wildcard else 'localhost'}"


def check_settings(given: ServeSettings) -> ServeSettings:
    """The settings in their normal form; BadInput in one sentence."""
    if not 0 <= given.port <= 65535:
        raise BadInput(why=f"--port takes a number from 0 to 65535, not {given.port}")
    if (given.tls_cert is None) != (given.tls_key is None):
        raise BadInput(why="--tls-cert and --tls-key go together")
    checked = given.replace(
        path_prefix=_check_prefix(given.path_prefix),
        public_url=None if given.public_url is None else _check_public_url(given.public_url),
    )
    if not is_loopback(checked.host) and not checked.is_tls and not checked.behind_proxy:
        raise BadInput(
            why=f"{checked.host or 'every address'} is reachable from other hosts, so give --tls-cert and --tls-key,"
            " or --behind-proxy if a proxy with TLS is in front"
        )
    return checked


def _check_prefix(prefix: str) -> str:
    bare = prefix.strip("/")
    if not bare:
        return ""
    parts = bare.split("/")
    letters = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
    if any(not part or part.startswith(".") or not letters.issuperset(part) for part in parts):
        raise BadInput(why=f"--path-prefix takes a path such as /mam, not {prefix[:80]!r}")
    return f"/{bare}"


def _check_public_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc or any(not " " < one < "\x7f" for one in text))
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain or port == 0:
        raise BadInput(why="--public-url takes an address such as https://mam.example.org, without login and query")
    return text.rstrip("/")

"""Parses addresses of servers, and formats them without secrets."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parse_address(url: str) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise _not_an_address(_unknown_parameter(url)) from None  # the error of the library may contain a password
    if any("@" in str(given.get(part) or "") for part in ("host", "dbname")):
        raise _not_an_address(None)
    return given


def format_address(given: dict[str, Any]) -> str:
    """The address without the password, as `--store` takes it."""
    shown = {name: str(value) for name, value in given.items() if value is not None and "password" not in name}
    user = f"{quote(shown.pop('user'), safe='')}@" if "user" in shown else ""
    hosts = _take_hosts(shown)
    name = quote(shown.pop("dbname", ""), safe="")
    settings = f"?{urlencode(shown, safe='/', quote_via=quote)}" if shown else ""
    return f"postgresql://{user}{hosts}/{name}{settings}"


def _take_hosts(shown: dict[str, str]) -> str:
    """The hosts with their ports. Sockets, and one port for several hosts, stay parameters."""
    hosts, ports = shown.get("host", "").split(","), shown.get("port", "").split(",")
    has_socket = any(host.startswith(("/", "@")) for host in hosts)
    if len(hosts) != len(ports) or (has_socket and len(hosts) > 1):
        return ""
    if has_socket:
        hosts = [""]
    else:
        shown.pop("host", None)
    shown.pop("port", None)
    return ",".join(map(_host_and_port, hosts, ports))


def _host_and_port(host: str, port: str) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" if port else name


def _unknown_parameter(url: str) -> str | None:
    """The name of the first unknown parameter, unless it may be part of a password with an unescaped ? or &."""
    query = url.partition("?")[2]
    if "@" in query:
        return None
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()} | {"ssl"}
    for pair in query.split("&"):
        name, equals, _value = pair.partition("=")
        if unquote(name) not in known:
            return name if equals and name.replace("_", "").isalnum() else None
        if "password" in name or "secret" in name:
            return None
    return None


def _not_an_address(unknown: str | None) -> BadInput:
    example = "postgresql://user@host:5432/database"
    hint = "; @ / : in a password are written %40 %2F %3A"
    if unknown is not None:
        hint = f": there is no parameter {unknown[:40]!r}"
    return BadInput(why=f"that is not a PostgreSQL address, such as {example}{hint}")

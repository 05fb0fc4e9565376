"""Attacks on the server: other hosts, other sites, guesses, slow and large requests."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from mam.access.credentials import create_code, ensure_local_token
from mam.access.viewer import LOCAL_TOKEN
from mam.registry import Registry
from mam.serve import protocol
from mam.serve.routes import ROUTES
from mam.serve.settings import ServeSettings
from mam.stores.memory import MemoryStore
from mam.util.clock import SystemClock
from tests.serve.serving import serving

if TYPE_CHECKING:
    from tests.serve.serving import Serving

UNSAFE = [route for route in ROUTES if route.method != "GET"]


def logged_in(served: Serving) -> httpx.Client:
    store = served.registry.store
    ensure_local_token(store)
    browser = served.browser()
    answer = browser.post(
        "/login", data={"code": create_code(store, LOCAL_TOKEN).secret}, headers={"origin": served.url}
    )
    assert answer.status_code == 303
    return browser


def path_of(path: str) -> str:
    return "/api/v1" + path.replace("{job}", "x").replace("{question}", "x.1").replace("{worker}", "w").replace(
        "{token}", "local"
    )


# -- the host --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "127.0.0.1:1"]
)
@pytest.mark.parametrize("path", ["/", "/login", "/api/v1/health", "/api/v1/events", "/static/login.js", "/mcp"])
def test_a_name_that_leads_here_is_not_answered(served: Serving, host: str, path: str) -> None:
    answer = logged_in(served).get(path, headers={"host": host})

    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers


def test_the_public_address_is_answered() -> None:
    registry = Registry(MemoryStore(SystemClock()))
    with serving(registry, public_url="https://mam.example.org", behind_proxy=True) as served:
        client = served.browser()
        named = {"host": "mam.example.org", "origin": "https://mam.example.org"}
        assert client.get("/api/v1/health", headers=named).status_code == 200
        assert client.get("/api/v1/health", headers={"host": "other.example.org"}).status_code == 421
        ensure_local_token(registry.store)
        code = create_code(registry.store, LOCAL_TOKEN).secret
        answer = client.post("/login", data={"code": code}, headers=named)
        assert answer.status_code == 303
        assert "; Secure" in answer.headers["set-cookie"]
        assert "max-age" in answer.headers["strict-transport-security"]


# -- other sites -----------------------------------------------------------------------------------------------------

FOREIGN = [
    {"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {},
    {"sec-fetch-site": "same-site"}, {"origin": "http://127.0.0.1:1"}, {"origin": "http://[broken"},
]  # fmt: skip


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_another_site_changes_nothing_with_the_cookie_of_a_browser(served: Serving, headers: dict[str, str]) -> None:
    browser = logged_in(served)
    before = served.registry.store.end_offset()
    for route in UNSAFE:
        answer = browser.request(route.method, path_of(route.path), json={}, headers=headers)
        assert answer.status_code == 403, route.name
        assert answer.json()["type"].endswith("#CrossSite")
    assert served.registry.store.end_offset() == before
    assert browser.get("/api/v1/me").status_code == 200, "the token local was not revoked"


def test_the_own_page_may_use_the_api_with_its_cookie(served: Serving) -> None:
    browser = logged_in(served)
    headers = {"origin": served.url, "sec-fetch-site": "same-origin"}
    answer = browser.post("/api/v1/jobs", json={"prompt": "x", "agent": "codex"}, headers=headers)

    assert answer.status_code == 201
    assert answer.json()["registered_by"].startswith(f"{LOCAL_TOKEN}.")


def test_a_form_of_another_site_cannot_pretend_to_be_json(served: Serving) -> None:
    answer = logged_in(served).post(
        "/api/v1/jobs", content=b'{"prompt": "x", "agent": "codex"}',
        headers={"origin": served.url, "content-type": "text/plain"},
    )  # fmt: skip
    assert answer.status_code == 415


def test_no_answer_allows_another_origin(served: Serving) -> None:
    browser = logged_in(served)
    for path in ("/api/v1/me", "/api/v1/health", "/login", "/static/login.js"):
        answer = browser.get(path, headers={"origin": "https://evil.example"})
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert browser.options("/api/v1/jobs", headers={"origin": "https://evil.example"}).status_code == 405


def test_a_log_out_needs_the_token_of_the_form(served: Serving) -> None:
    browser = logged_in(served)
    own = {"origin": served.url}
    for given in ("", "x", "x.y", "é.é"):
        browser.post("/logout", data={"csrf": given}, headers=own)
        assert browser.get("/api/v1/me").status_code == 200
    page = browser.get("/").text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    assert csrf

    assert browser.post("/logout", data={"csrf": csrf}, headers=own).status_code == 303
    assert browser.get("/api/v1/me").status_code == 401


# -- headers of answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/login", "/api/v1/me", "/api/v1/nope", "/nope", "/api/v1/docs"])
def test_every_answer_has_the_headers_that_protect_it(served: Serving, path: str) -> None:
    headers = logged_in(served).get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "no-store" in headers["cache-control"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_an_artifact_is_saved_and_not_shown(served: Serving) -> None:
    from tests.serve.flows import STEPS, World

    headers = STEPS["job_artifact"](World(served)).headers
    assert headers["content-disposition"] == "attachment"
    assert headers["content-security-policy"].startswith("sandbox")


# -- guesses ---------------------------------------------------------------------------------------------------------


def test_wrong_codes_soon_meet_a_limit(served: Serving) -> None:
    ensure_local_token(served.registry.store)
    code = create_code(served.registry.store, LOCAL_TOKEN).secret
    browser, own = served.browser(), {"origin": served.url}
    answers = [browser.post("/login", data={"code": "0" * 16}, headers=own).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2

    answer = browser.post("/login", data={"code": code}, headers=own)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0


def test_wrong_tokens_meet_a_limit_that_leaves_valid_tokens_and_browsers_alone(served: Serving) -> None:
    browser, client = logged_in(served), served.client()
    answers = {client.get("/me", headers={"authorization": f"Bearer mam_{one}"}).status_code for one in range(101)}
    assert answers == {401, 429}
    assert served.client("read").get("/me").status_code == 200  # another program at the same address
    assert browser.get("/api/v1/me").status_code == 200


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/a\nb"]
)
def test_a_log_in_leads_to_this_server_only(served: Serving, target: str) -> None:
    ensure_local_token(served.registry.store)
    code = create_code(served.registry.store, LOCAL_TOKEN).secret
    answer = served.browser().post("/login", data={"code": code, "next": target}, headers={"origin": served.url})

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


# -- slow requests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"GET /api/v1/health HTTP/1.1\r\nHost: x", b"POST /login HTTP/1.1\r\nHost: "])
def test_a_request_that_does_not_arrive_ends(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.1)
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.1)
    with (
        serving(Registry(MemoryStore(SystemClock()))) as served,
        socket.create_connection(("127.0.0.1", served.server.settings.port), timeout=60) as connection,
    ):
        connection.sendall(sent)
        assert b" 408 " in connection.recv(1000)
        assert connection.recv(1000) == b""


def test_a_body_that_does_not_arrive_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.1)
    with (
        serving(Registry(MemoryStore(SystemClock()))) as served,
        socket.create_connection(("127.0.0.1", served.server.settings.port), timeout=60) as connection,
    ):
        host = f"localhost:{served.server.settings.port}"
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        connection.sendall(f"POST /login HTTP/1.1\r\nHost: {host}\r\n{form}Content-Length: 100\r\n\r\nabc".encode())
        assert b" 408 " in connection.recv(1000)


# -- settings --------------------------------------------------------------------------------------------------------


def test_the_cookie_is_limited_to_https_where_browsers_use_it() -> None:
    assert not ServeSettings().is_https
    assert ServeSettings(public_url="https://x.example").is_https
    assert ServeSettings(tls_cert="a", tls_key="b").is_https

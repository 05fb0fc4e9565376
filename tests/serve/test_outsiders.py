"""What callers learn and cost who may do little: without a log-in, or with a token that only submits or works."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from mam.access.credentials import create_code
from mam.serve.login import FORM_LIMIT
from tests.serve.flows import World
from tests.serve.process import server_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command import Mam
    from tests.serve.serving import Serving

SECRET = "canary-of-another"
PAGES = (
    "/", "/jobs", "/jobs?search=canary", "/jobs/new", "/workers", "/statistics", "/health", "/tokens", "/help",
    "/jobs/{job}", "/jobs/{job}/version", "/jobs/{job}/record", "/jobs/{job}/edit",
    "/jobs/{job}/artifacts/report.md", "/jobs/{job}/files/report.md", "/nowhere",
)  # fmt: skip


def anothers_job(served: Serving) -> str:
    world = World(served, served.client("admin", name="boss"), owner="somebody-else")
    job = world.completed().job_id
    served.registry.register(prompt=SECRET, agent="codex", label=SECRET, registered_by="somebody-else")
    return job


def browser_of(served: Serving, *scopes: str) -> httpx.Client:
    served.token(*scopes, name="caller")
    browser = served.browser()
    code = create_code(served.registry.store, "caller").secret
    assert browser.post("/login", data={"code": code}, headers={"origin": served.url}).status_code == 303
    return browser


@pytest.mark.parametrize("scope", ["submit", "work"])
def test_no_page_shows_the_jobs_of_others_to_a_token_that_does_not_read(served: Serving, scope: str) -> None:
    job = anothers_job(served)
    browser = browser_of(served, scope)
    for page in PAGES:
        answer = browser.get(page.format(job=job))
        assert answer.status_code in ((403, 404) if "{job}" in page else (200, 303, 403, 404)), page
        assert SECRET not in answer.text, page
        assert job[:8] not in answer.text.replace(job, ""), page  # a problem repeats what was asked for
        assert "{job}" in page or job not in answer.text, page


def test_without_a_log_in_every_page_leads_to_the_log_in(served: Serving) -> None:
    job = anothers_job(served)
    browser = served.browser()
    for page in PAGES:
        answer = browser.get(page.format(job=job))
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login"), page


@pytest.mark.parametrize("path", ["/login", "/logout", "/jobs", "/jobs/new", "/jobs/x/cancel", "/theme"])
def test_a_caller_without_a_log_in_sends_no_large_form(served: Serving, path: str) -> None:
    """The server must not keep megabytes for each of its connections."""
    asked = 0

    def pieces() -> Iterator[bytes]:
        nonlocal asked
        for _ in range(200):
            asked += 1
            yield b"code=" + b"x" * FORM_LIMIT

    form = {"content-type": "application/x-www-form-urlencoded", "origin": served.url}
    try:
        answer = served.browser().post(path, content=pieces(), headers=form)
    except httpx.TransportError:
        return  # it closed the connection while more was sent
    assert answer.status_code in (303, 413)


SMUGGLED = "0\r\n\r\nGET /api/v1/tokens HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
        "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: -5\r\n\r\n",
        "GET /api/v1/health HTTP/1.1\r\n{host}Host: evil.example\r\nConnection: close\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\r\n\r\n",
    ],
    ids=["length and chunks", "two lengths", "a negative length", "two hosts", "tls on a plain port"],
)
def test_a_request_that_a_proxy_could_read_differently_is_refused(served: Serving, sent: str) -> None:
    port = served.server.settings.port
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(sent.replace("{host}", f"Host: 127.0.0.1:{port}\r\n").encode("latin-1"))
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_no_problem_names_where_the_store_is(mam: Mam) -> None:
    token = mam("token", "create", "t", "--scope", "submit").line
    with server_process(mam) as server, server.client(token) as client:
        answer = client.get("/jobs/nope")
    assert answer.json()["detail"] == "No job nope in this store."


def test_a_server_has_room_for_all_its_connections(mam: Mam) -> None:
    with server_process(mam) as server:
        with open(f"/proc/{server.process.pid}/limits", encoding="ascii") as file:
            soft, hard = next(line for line in file if line.startswith("Max open files")).split()[3:5]
    assert hard == "unlimited" or int(soft) >= min(int(hard), 4096)

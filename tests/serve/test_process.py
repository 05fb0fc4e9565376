"""The process: what it prints, where it listens, how it ends."""

from __future__ import annotations

import json
import os
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.serve.process import server_process

if TYPE_CHECKING:
    from tests.cli.command import Mam


def test_the_printed_address_logs_in_once(mam: Mam) -> None:
    with server_process(mam) as server, server.client(path="") as browser, server.client(path="") as other:
        assert browser.get("/").headers["location"] == "/login"
        answer = browser.post("/login", data={"code": server.code}, headers={"origin": server.url})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert browser.get("/").status_code == 200
        assert browser.get("/api/v1/me").json()["name"] == "local"

        again = other.post("/login", data={"code": server.code}, headers={"origin": server.url})
        assert again.status_code == 401
        assert "set-cookie" not in again.headers
        assert server.code not in again.text


def test_a_login_outlives_the_server(mam: Mam) -> None:
    with server_process(mam) as server, server.client(path="") as browser:
        browser.post("/login", data={"code": server.code}, headers={"origin": server.url})
        cookies = dict(browser.cookies)
    with server_process(mam) as server, server.client() as client:
        client.cookies.update(cookies)
        assert client.get("/me").status_code == 200

        assert mam("token", "revoke", "local").code == 0
        assert client.get("/me").status_code == 401


def test_sigterm_ends_it_after_the_requests_that_run(mam: Mam) -> None:
    token = mam("token", "create", "t", "--scope", "read").line
    job = mam("register", "x", "--agent", "codex").line
    with server_process(mam) as server:
        with server.client(token) as client, client.stream("GET", "/events") as events:
            lines = events.iter_lines()
            assert next(lines) == ": mam"
            with server.client(token) as other:
                assert other.get(f"/jobs/{job}").status_code == 200
            server.process.terminate()
            list(lines)
        said = server.stop()
    assert server.process.returncode == 0
    assert "Traceback" not in said


def test_a_port_that_is_taken_names_its_holder(mam: Mam) -> None:
    with server_process(mam) as server:
        mam("serve", "--port", str(server.port)).failed(
            1, f"Port {server.port} of 127.0.0.1 is taken by process {server.process.pid} (mam serve)"
        )
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        mam("serve", "--port", str(port)).failed(1, f"taken by process {os.getpid()} (")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--host", "0.0.0.0"), "is reachable from other hosts"),
        (("--host", "192.0.2.1"), "--tls-cert"),
        (("--tls-cert", "x"), "go together"),
        (("--port", "99999"), "--port"),
        (("--path-prefix", "/a b"), "--path-prefix"),
        (("--public-url", "mam.example.org"), "--public-url"),
        (("--public-url", "https://me:pw@mam.example.org"), "--public-url"),
    ],
    ids=str,
)
def test_a_wrong_address_is_refused_in_one_sentence(mam: Mam, words: tuple[str, ...], why: str) -> None:
    mam("serve", *words).failed(2, why)


def test_an_agent_cannot_start_a_server_or_make_a_token(mam: Mam) -> None:
    for words in (("serve",), ("token", "create", "x", "--scope", "admin"), ("token", "list")):
        mam(*words, MAM_SOCKET="/nowhere").failed(1, "only a person")


def test_no_secret_is_in_the_log_or_the_arguments(mam: Mam) -> None:
    token = mam("token", "create", "t", "--scope", "read").line
    with server_process(mam) as server:
        with server.client(token) as client:
            client.get("/jobs")
            client.get("/nope", params={"token": token})
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
            arguments = file.read()
        said = server.stop()
    assert token not in said
    assert server.code not in said
    assert server.code.encode() not in arguments


def test_the_server_is_found_under_its_address_only(mam: Mam) -> None:
    with server_process(mam) as server, httpx.Client(trust_env=False) as client:
        answer = client.get(f"{server.url}/api/v1/health", headers={"host": "rebound.example"})
        assert answer.status_code == 421
        assert client.get(f"http://localhost:{server.port}/api/v1/health").status_code == 200


def test_a_reader_misses_nothing_when_the_server_is_killed(mam: Mam) -> None:
    token = mam("token", "create", "t", "--scope", "read").line
    jobs = list[str]()
    last = "start"
    for _ in range(3):
        with server_process(mam) as server, server.client(token) as client:
            jobs.append(mam("register", "x", "--agent", "codex").line)
            with client.stream("GET", "/events", headers={"last-event-id": last}) as events:
                lines = events.iter_lines()
                found = next(line for line in lines if jobs[-1] in line)
                assert all(job not in found for job in jobs[:-1])
                last = mam_position(found)
            server.process.kill()
            server.process.wait(60)


def mam_position(line: str) -> str:
    position: str = json.loads(line.removeprefix("data: "))["position"]
    return position


def test_a_service_writes_no_code_into_its_log(mam: Mam) -> None:
    unit = mam("service", "serve", "--", "--port", "8700").out
    assert "serve --store" in unit
    assert "--port 8700" in unit
    mam("service", "serve", "--", "--prot", "1").failed(2, "--prot")

    mam.env["JOURNAL_STREAM"] = "9:1"
    with server_process(mam) as server:
        assert server.printed == server.url
        with server.client(path="") as client:
            assert client.get("/api/v1/health").status_code == 200

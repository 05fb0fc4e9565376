"""nginx with TLS before the server, under a path, as docs/how-to/phone.md shows it."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.needs import program
from tests.serve.certificates import make_certificate
from tests.serve.process import ServerProcess
from tests.waiting import await_that

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.command import Mam

CONFIG = """\
daemon off; master_process off; pid {home}/pid; error_log {home}/error.log; events {{}}
http {{
  access_log {home}/access.log; client_body_temp_path {home}/body; proxy_temp_path {home}/proxy;
  fastcgi_temp_path {home}/fastcgi; uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
    location /mam/ {{
      proxy_pass http://127.0.0.1:{upstream}; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header Connection "";
      proxy_buffering off; client_max_body_size 20m;
    }}
    location /stripped/ {{ proxy_pass http://127.0.0.1:{upstream}/; proxy_set_header Host $http_host; }}
  }}
}}
"""


@pytest.fixture
def proxied(mam: Mam, tmp_path: Path) -> Iterator[tuple[ServerProcess, httpx.Client, str]]:
    nginx = program("nginx")
    home = tmp_path / "nginx"
    home.mkdir()
    cert, key = make_certificate(home)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"https://localhost:{port}/mam"
    server = ServerProcess(mam, ("--behind-proxy", "--path-prefix", "/mam", "--public-url", url, "--host", "127.0.0.1"))
    upstream = port_of(server.process.pid)
    (home / "nginx.conf").write_text(CONFIG.format(home=home, cert=cert, key=key, port=port, upstream=upstream))
    proxy = subprocess.Popen([nginx, "-c", str(home / "nginx.conf"), "-p", str(home)], stderr=subprocess.DEVNULL)
    context = ssl.create_default_context(cafile=cert)
    client = httpx.Client(verify=context, base_url=f"https://localhost:{port}", timeout=60, trust_env=False)
    try:
        await_that(lambda: is_open(port), "nginx does not listen")
        yield server, client, url
    finally:
        client.close()
        proxy.terminate()
        proxy.wait(60)
        server.stop()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def port_of(pid: int) -> int:
    """The port at which a process listens; the printed address is the public one."""
    ran = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True)
    line = next(line for line in ran.stdout.splitlines() if f"pid={pid}," in line)
    return int(line.split()[3].rpartition(":")[2])


def test_a_browser_and_a_program_reach_mam_below_a_path(
    mam: Mam, proxied: tuple[ServerProcess, httpx.Client, str]
) -> None:
    server, client, url = proxied
    assert server.url == url
    own = {"origin": url.removesuffix("/mam")}

    answer = client.post("/mam/login", data={"code": server.code}, headers=own)
    assert (answer.status_code, answer.headers["location"]) == (303, "/mam/")
    assert "Path=/mam" in answer.headers["set-cookie"]
    assert "Secure" in answer.headers["set-cookie"]
    page = client.get("/mam/")
    assert page.status_code == 200
    assert 'href="/mam/' in page.text

    made = client.post("/mam/api/v1/jobs", json={"prompt": "x" * (1 << 20), "agent": "codex"}, headers=own)
    assert made.status_code == 201
    assert made.headers["location"] == f"/mam/api/v1/jobs/{made.json()['job_id']}"
    assert client.get(made.headers["location"]).status_code == 200
    assert client.get("/stripped//api/v1/health").json()["status"] == "ok"
    assert client.post("/mam/api/v1/jobs", json={}, headers={"origin": "https://evil.example"}).status_code == 403

    with client.stream("GET", "/mam/api/v1/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": mam"
        job = mam("register", "live", "--agent", "codex").line
        found = next(line for line in lines if line.startswith("data: "))
        assert json.loads(found.removeprefix("data: "))["job_id"] == job

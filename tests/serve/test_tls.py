"""TLS with given files: the API, log-in and live events over it, wrong files, and a certificate that is renewed."""

from __future__ import annotations

import os
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from mam.registry import Registry
from mam.serve.tls import check_certificate
from mam.stores.memory import MemoryStore
from mam.util.clock import SystemClock
from tests.serve.certificates import make_certificate
from tests.serve.process import server_process
from tests.serve.serving import serving
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.cli.command import Mam


def test_the_api_a_browser_and_live_events_use_tls(mam: Mam, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=cert)
    token = mam("token", "create", "t", "--scope", "read").line
    with (
        server_process(mam, "--tls-cert", cert, "--tls-key", key) as server,
        httpx.Client(base_url=server.url, verify=trusted, timeout=60, trust_env=False) as client,
    ):
        assert server.url == f"https://127.0.0.1:{server.port}"
        answer = client.post("/login", data={"code": server.code}, headers={"origin": server.url})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-")
        assert "Secure" in cookie
        assert client.get("/").status_code == 200
        other = client.post("/api/v1/jobs", json={}, headers={"origin": f"http://127.0.0.1:{server.port}"})
        assert other.status_code == 403, "the same host without TLS is another origin"

        client.cookies.clear()
        bearer = {"authorization": f"Bearer {token}"}
        with client.stream("GET", "/api/v1/events", headers=bearer) as events:
            lines = events.iter_lines()
            assert next(lines) == ": mam"
            job = mam("register", "x", "--agent", "codex").line
            assert job in next(line for line in lines if line.startswith("data: "))

        plain = httpx.Client(timeout=60, trust_env=False)
        with plain, pytest.raises(httpx.HTTPError):
            plain.get(f"http://127.0.0.1:{server.port}/api/v1/health")
        assert client.get("/api/v1/health").status_code == 200


@pytest.mark.parametrize(
    ("cert", "key", "why"),
    [
        ("own.pem", "other.key", "other.key does not belong to the certificate"),
        ("gone.pem", "own.key", "gone.pem: No such file"),
        ("own.pem", "gone.key", "gone.key: No such file"),
        ("own.key", "own.pem", "are not a certificate and its key in PEM"),
        ("locked.pem", "locked.key", "locked.key is encrypted"),
        (".", "own.key", "Is a directory"),
    ],
)
def test_wrong_files_are_refused_in_one_sentence_and_create_nothing(
    mam: Mam, tmp_path: Path, cert: str, key: str, why: str
) -> None:
    make_certificate(tmp_path)
    make_certificate(tmp_path, "other")
    make_certificate(tmp_path, "locked", password="a password")
    store = tmp_path / "new.db"
    files = ("--tls-cert", str(tmp_path / cert), "--tls-key", str(tmp_path / key))
    mam("serve", "--store", f"sqlite://{store}", *files).failed(2, why)
    assert not store.exists()


def test_an_expired_certificate_is_named_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = make_certificate(tmp_path)
    check_certificate(cert, key)
    assert not caplog.messages

    later = time.time() + 3 * 86_400
    monkeypatch.setattr("mam.serve.tls.time.time", lambda: later)
    check_certificate(cert, key)
    assert caplog.messages == [f"the certificate {cert} has expired; browsers refuse it"]


def test_a_renewed_certificate_is_used_and_a_broken_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mam.serve.tls.LOOK_SECONDS", 0.01)
    cert, key = make_certificate(tmp_path)
    new_cert, new_key = make_certificate(tmp_path, "new")
    first, second = Path(cert).read_text(), Path(new_cert).read_text()
    with serving(Registry(MemoryStore(SystemClock())), tls_cert=cert, tls_key=key) as served:
        address = ("127.0.0.1", served.server.settings.port)
        assert ssl.get_server_certificate(address).strip() == first.strip()

        os.replace(new_cert, cert)  # its key is not there yet
        os.replace(new_key, key)
        await_that(lambda: ssl.get_server_certificate(address).strip() == second.strip(), "the old one is in use")

        Path(key).write_text("no key")
        warned = ssl.get_server_certificate(address)
        assert warned.strip() == second.strip()

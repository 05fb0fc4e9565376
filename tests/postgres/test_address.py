"""Addresses: how safely a server is reached, and that no password is ever shown."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from mam.errors import MamError, StoreUnavailable
from mam.stores.postgres import connection
from mam.stores.postgres.connection import Server

SECRET = "Tr0ub4dor"


def settings(url: str) -> dict[str, str]:
    return {name: str(value) for name, value in conninfo_to_dict(Server(url)._conninfo()).items()}


@pytest.mark.parametrize(
    "host",
    [
        "db.example.org",
        "10.0.0.7",
        "[2001:db8::7]",
        "localhost.example.org",
        "127.example.org",
        "[::1234]",
        "localhost,db.example.org",
    ],
)
def test_a_remote_host_must_present_a_certificate(host: str) -> None:
    assert settings(f"postgresql://me@{host}/jobs")["sslmode"] == "verify-full"


def test_a_host_given_by_address_must_present_a_certificate() -> None:
    assert settings("postgresql:///jobs?hostaddr=203.0.113.5")["sslmode"] == "verify-full"


@pytest.mark.parametrize("variable", ["PGHOST", "PGHOSTADDR"])
def test_a_host_from_the_environment_must_present_a_certificate(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "203.0.113.5")
    assert settings("postgresql:///jobs")["sslmode"] == "verify-full"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]", "", "%2Frun%2Fpostgresql"])
def test_this_host_needs_no_proof(host: str) -> None:
    assert "sslmode" not in settings(f"postgresql://me@{host}/jobs")


def test_a_weaker_sslmode_of_the_address_is_used() -> None:
    assert settings("postgresql://me@db.example.org/jobs?sslmode=require")["sslmode"] == "require"


def test_every_connection_waits_for_the_disk_and_no_statement_for_ever() -> None:
    options = settings("postgresql:///jobs")["options"]
    assert "synchronous_commit=on" in options
    assert "statement_timeout=" in options


def test_options_in_the_address_do_not_take_mams_own_away() -> None:
    options = settings("postgresql:///jobs?options=-c%20work_mem%3D8MB")["options"]
    for option in ("work_mem=8MB", "synchronous_commit=on", "statement_timeout="):
        assert option in options


def test_a_network_that_swallows_packets_is_noticed() -> None:
    found = settings("postgresql://me@db.example.org/jobs")
    assert int(found["tcp_user_timeout"]) <= 60_000
    assert int(found["keepalives_idle"]) <= 60


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@db.example.org/jobs",
        f"postgresql://db.example.org/jobs?user=me&password={SECRET}",
        f"postgresql://me@db.example.org/jobs?sslpassword={SECRET}",
        f"postgresql://me:{SECRET}%3F%2F@db.example.org/jobs",
        f"postgresql://me:{SECRET}@db.example.org:port/jobs",
        f"postgresql://me:{SECRET}@db.example.org/jobs?nonsense=1",
        f"postgresql://me:{SECRET}@[::1/jobs",
        f"postgresql://me:{SECRET}%zz@db.example.org/jobs",
        f"postgresql://me:{SECRET} x@db.example.org/jobs",
        f"postgresql://me:x/{SECRET}@db.example.org/jobs",
        f"postgresql://me:x@{SECRET}@db.example.org/jobs",
        f"postgresql://me:x/y?{SECRET}=1@db.example.org/jobs",
        f"postgresql://db.example.org/jobs?password=x&{SECRET}=1",
        f"postgresql://db.example.org/jobs?{SECRET}",
    ],
)
def test_no_password_is_shown_however_badly_it_was_written(url: str) -> None:
    try:
        shown = Server(url).address
    except MamError as error:
        shown = str(error)
    assert SECRET not in shown


def test_an_unreadable_address_is_reported_in_one_line() -> None:
    with pytest.raises(MamError, match="nonsense") as caught:
        Server("postgresql://me@db.example.org/jobs?nonsense=1")
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@db.example.org:5433/jobs",
        "postgresql://db.example.org/jobs",
        "postgresql://me@[::1]:5433/jobs",
        "postgresql://me@/jobs?host=/run/pg",
        "postgresql://m%40e@h/jobs",
        "postgresql://me@h/jobs?sslrootcert=/c",
        "postgresql://mam@127.0.0.1:1,127.0.0.1:54399/newer",
        "postgresql://me@a,b:5433,c/jobs",
        "postgresql://me@a,b/jobs",
        "postgresql://me@a,b/jobs?port=5433",
        "postgresql://me@[::1]:5433,[::1]/jobs",
        "postgresql://me@/jobs?host=/run/a,/run/b&port=5433,5434",
        "postgresql://me@%2Frun%2Fpg:5433,b:5434/jobs",
        "postgresql://me@:5433/jobs?host=/run/pg",
        "postgresql://me@/jobs?hostaddr=127.0.0.1,127.0.0.2&port=5433,5434",
    ],
)
def test_the_address_that_is_shown_can_be_given_to_store(url: str) -> None:
    """`mam init` prints it, and scripts use what it prints."""
    assert settings(Server(url).address) == settings(url)


def test_several_hosts_are_shown_each_with_its_port() -> None:
    url = "postgresql://mam@127.0.0.1:1,127.0.0.1:54399/newer"
    assert Server(url).address == url


@pytest.mark.parametrize("url", ["postgresql://h/jobs?bogus=1", "postgresql://h/jobs?sslmode=require&bogus=1&port=2"])
def test_an_unknown_parameter_is_named(url: str) -> None:
    with pytest.raises(MamError, match="there is no parameter 'bogus'"):
        Server(url)


# -- a host that shall prove who it is and cannot ----------------------------------------------------------------------


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """The address of a server that gives this answer to a client that asks for TLS."""
    with socket.create_server(("127.0.0.1", 0)) as ear:

        def serve() -> None:
            with ear.accept()[0] as caller:
                caller.recv(8)
                caller.sendall(answer)
                caller.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"postgresql://me@127.0.0.1:{ear.getsockname()[1]}/jobs"
        thread.join()


def refused_by(url: str) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        Server(url).connect()
    assert "\n" not in str(caught.value)
    return str(caught.value)


WHY = "mam connects to a host that is not local only over TLS with a verified certificate"


def test_an_unencrypted_connection_is_reported_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_is_local", lambda _host: False)
    with listening(b"N") as url:
        said = refused_by(url)
    for words in ("does not support SSL", WHY, "sslmode=disable"):
        assert words in said


def test_a_missing_certificate_is_reported_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connection, "_is_local", lambda _host: False)
    with listening(b"S") as url:
        missing = refused_by(f"{url}?sslrootcert={tmp_path}/root.crt")
    for words in ("root certificate file", "does not exist", WHY, "sslrootcert=FILE", "sslmode=require"):
        assert words in missing


def test_a_user_who_asked_for_tls_gets_no_hint_about_it() -> None:
    with listening(b"N") as url:
        said = refused_by(f"{url}?sslmode=require")
    assert "sslmode=disable" in said
    assert WHY not in said

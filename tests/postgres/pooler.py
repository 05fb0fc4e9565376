"""PgBouncer in front of a private server, with Debian's package and mam's settings."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.needs import program
from tests.postgres.server import PrivateServer, unprivileged
from tests.waiting import await_that

PORT = 6432


class Pooler:
    """Its databases are named after the mode of their pool: `session` and `transaction`."""

    def __init__(self, folder: Path, server: PrivateServer, *settings: str) -> None:
        self._folder = folder
        folder.mkdir(mode=0o755)
        place = f"host={server.folder} dbname=postgres user=mam"
        lines = [
            "[databases]",
            *(f"{mode} = {place} pool_mode={mode}" for mode in ("session", "transaction")),
            "[pgbouncer]",
            "listen_addr =",
            f"unix_socket_dir = {folder}",
            "auth_type = any",
            *settings,
        ]
        file = folder / "pgbouncer.ini"
        file.write_text("\n".join(lines), encoding="utf-8")
        user = unprivileged() if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(folder, user)
        command = [program("pgbouncer"), str(file)]
        with (folder / "log").open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, user=user, cwd="/", stderr=log)
        await_that(lambda: (folder / f".s.PGSQL.{PORT}").exists())

    def url(self, mode: str) -> str:
        return f"postgresql://mam@/{mode}?host={self._folder}&port={PORT}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

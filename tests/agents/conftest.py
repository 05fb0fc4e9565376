from __future__ import annotations

from tests.cli.conftest import mam
from tests.postgres.conftest import database, server

__all__ = ["database", "mam", "server"]

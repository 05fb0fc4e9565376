from __future__ import annotations

from tests.postgres.conftest import database, server

__all__ = ["database", "server"]

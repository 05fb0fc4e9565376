from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.audit.sync import AuditLog
from mam.registry import Registry
from tests.audit.support import Memory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs_dir(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def store() -> Memory:
    return Memory()


@pytest.fixture
def registry(store: Memory, logs_dir: Path) -> Registry:
    return Registry(store, AuditLog(str(logs_dir)))

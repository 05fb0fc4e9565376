from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The server's clock does not obey a test."""
    by_server = [item for item in items if item.nodeid.partition("::")[2].startswith("TestByTheServersClock")]
    obeying = {item for item in by_server if isinstance(item, pytest.Function) and "clock" in item.fixturenames}
    if obeying:
        config.hook.pytest_deselected(items=list(obeying))
        items[:] = [item for item in items if item not in obeying]

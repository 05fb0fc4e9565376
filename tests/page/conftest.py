"""A browser, and a server on a copy of the scene for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright
from tools.scene.server import SceneServer, start_browser
from tools.scene.store import make_scene

from tests.needs import need
from tests.page.visitor import Visitor
from tests.real_agents.install import cache, installed

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    need("chromium")
    with sync_playwright() as playwright:
        found = start_browser(playwright)
        yield found
        found.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, from npm."""
    need("npm")
    folder = installed(Path(__file__).with_name("package.json"), cache())
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The directory of a store, and the ids of its jobs by name."""
    directory = tmp_path_factory.mktemp("scene")
    made = make_scene(str(directory))
    made.store.close()
    return directory, made.ids


@pytest.fixture
def visitor(browser: Browser, scene: tuple[Path, dict[str, str]], tmp_path: Path) -> Iterator[Visitor]:
    """Someone who is logged in to a server of their own."""
    directory = tmp_path / "store"
    shutil.copytree(scene[0], directory)
    with SceneServer(str(directory)) as server:
        found = Visitor(browser, server, str(directory), scene[1])
        yield found
        found.close()

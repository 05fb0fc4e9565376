"""What a test does with the page: open it, in any kind of browser, and look into the store behind it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore
from mam.util.clock import SystemClock

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page, StorageState
    from tools.scene.server import SceneServer

    from mam.jobs.record import Job

DESK, LAPTOP, PHONE = (1440, 900), (1024, 768), (390, 844)


class Visitor:
    def __init__(self, browser: Browser, server: SceneServer, directory: str, ids: dict[str, str]) -> None:
        self._browser = browser
        self.server = server
        self.directory = directory
        self.ids = ids
        self.registry = Registry(SqliteStore(os.path.join(directory, "mam.sqlite"), SystemClock()))
        self.problems: list[str] = []
        """What the browser reported: errors of scripts, and what the content policy refused."""
        self._contexts: list[BrowserContext] = []
        self._state: StorageState | None = None

    def context(self, *, size: tuple[int, int] = DESK, dark: bool = False, script: bool = True) -> BrowserContext:
        """A browser of its own, with the log-in of the first one."""
        options: dict[str, Any] = {} if self._state is None else {"storage_state": self._state}
        made = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light",
            java_script_enabled=script, reduced_motion="reduce", timezone_id="Europe/Berlin", **options,
        )  # fmt: skip
        made.set_default_timeout(20_000)
        self._contexts.append(made)
        return made

    def open(self, path: str = "/", **options: Any) -> Page:
        if self._state is None:
            first = self.context()
            self.server.log_in(first)
            self._state = first.storage_state()
        page = self.context(**options).new_page()
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", self._refuse)
        page.goto(self.server.url + path)
        return page

    def live(self, path: str = "/", **options: Any) -> Page:
        """The page, once it is connected."""
        page = self.open(path, **options)
        page.wait_for_selector("#live[data-state=live]")
        return page

    def allow_private_push(self) -> None:
        """Starts the server again with a setting that lets it send to this host."""
        folder = os.path.join(self.directory, "home/.config/mam")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write("[push]\nprivate = true\n")
        self.server.stop()
        self.server.start()

    def job(self, name: str) -> Job:
        return self.registry.get(self.ids[name])

    def newest(self) -> Job:
        from mam.stores.port import Query

        return next(self.registry.select(Query()))

    def _refuse(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _note(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        self.registry.store.close()
        assert not self.problems

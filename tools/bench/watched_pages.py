"""The list of jobs in browsers, under watch: what its scripts hold, and what its process takes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools.scene.server import CHROMIUM, FLAGS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from playwright.sync_api import Browser, CDPSession

    from tools.bench.serving import BenchServer

SETTLE_SECONDS = 5.0


class WatchedPage:
    """The list of jobs in a browser that tells what the scripts of the page hold. For that it records what arrives, so
    its process grows by itself."""

    def __init__(self, browser: Browser, server: BenchServer) -> None:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        self.asked = 0
        """How often the page asked for itself again."""
        self._page = context.new_page()
        address = server.login.partition("/login#")[0]
        self._page.goto(server.login)
        self._page.wait_for_url(f"{address}/")
        self._page.goto(f"{address}/jobs")
        self._page.wait_for_selector("#live[data-state=live]")
        self._page.on("requestfinished", self._count)
        self._session: CDPSession = context.new_cdp_session(self._page)
        self._session.send("Performance.enable")

    def _count(self, _request: object) -> None:
        self.asked += 1

    def rest(self, seconds: float) -> None:
        self._page.wait_for_timeout(seconds * 1000)

    def is_live(self) -> bool:
        return self._page.locator("#live[data-state=live]").count() == 1

    def held(self) -> Mapping[str, float]:
        """After a collection: what is left is held by something."""
        self._session.send("HeapProfiler.collectGarbage")
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return {one["name"]: float(one["value"]) for one in metrics}


class PlainPage:
    """The list of jobs in a browser that records nothing, as a person has it."""

    def __init__(self, server: BenchServer, code: str, folder: Path) -> None:
        address = f"http://127.0.0.1:{server.port}/login?next=/jobs#{code}"
        before = browser_processes().keys()
        argv = [CHROMIUM, "--headless=new", *FLAGS, f"--user-data-dir={folder / 'profile'}", address]
        self._process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = await_renderer(before)

    def __enter__(self) -> PlainPage:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)


def await_renderer(before: Collection[int]) -> int:
    """The process that draws the page: of the new ones the one that has worked most after a while."""
    time.sleep(SETTLE_SECONDS)
    found = {pid for pid, kind in browser_processes().items() if kind == "renderer"} - set(before)
    return max(found, key=cpu_seconds)


def browser_processes() -> dict[int, str]:
    """The processes below this one that are parts of chromium, with their kinds."""
    found, below = dict[int, str](), {os.getpid()}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda one: int(one.name)):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().split()
        except OSError:
            continue
        if parent in below:
            below.add(int(folder.name))
            kinds = [word.partition("=")[2] for word in words if word.startswith("--type=")]
            found.update({int(folder.name): kind for kind in kinds})
    return found


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

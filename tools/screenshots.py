"""Draw the pictures of the page: a real browser on a real server, over the store of `tools.scene`.

python -m tools.screenshots              # the pictures of the manual, into docs/pictures
python -m tools.screenshots --all DIR    # every view, light and dark, at three widths, to look at

Run it again after the page has changed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tools.scene.server import SceneServer, start_browser
from tools.scene.store import make_scene

PICTURES = Path(__file__).resolve().parent.parent / "docs/pictures"
SIZES = ((1440, 900), (1024, 768), (390, 844))
VIEWS = {
    "needs-me": "/", "jobs": "/jobs", "job": "/jobs/{flaky}", "running": "/jobs/{importer}", "asking": "/jobs/{login}",
    "failed": "/jobs/{notes}", "new-job": "/jobs/new", "edit": "/jobs/{review}/edit", "record": "/jobs/{flaky}/record",
    "workers": "/workers", "statistics": "/statistics", "health": "/health", "tokens": "/tokens",
    "notifications": "/notifications", "help": "/help",
    "missing": "/nowhere", "found": "/jobs?state=error",
}  # fmt: skip


class Studio:
    """A browser that is logged in to the server of a scene."""

    def __init__(self, browser: Browser, server: SceneServer, ids: dict[str, str]) -> None:
        self._browser = browser
        self._server = server
        self._ids = ids
        first = browser.new_context()
        server.log_in(first)
        self._state = first.storage_state()
        first.close()

    def open(self, path: str, width: int, height: int, *, dark: bool) -> Page:
        options: dict[str, Any] = {"viewport": {"width": width, "height": height}, "reduced_motion": "reduce"}
        context = self._browser.new_context(
            storage_state=self._state, color_scheme="dark" if dark else "light", timezone_id="Europe/Berlin", **options
        )
        page = context.new_page()
        page.goto(self._server.url + path.format(**self._ids))
        page.wait_for_selector("#live[data-state=live], #live[data-state=off]")
        return page


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="mam-screenshots-") as directory:
        scene = make_scene(directory)
        scene.store.close()
        with SceneServer(directory) as server, sync_playwright() as playwright:
            studio = Studio(start_browser(playwright), server, scene.ids)
            if arguments[:1] == ["--all"] and len(arguments) == 2:
                _all(studio, Path(arguments[1]))
            else:
                _manual(studio)


def _manual(studio: Studio) -> None:
    """The three pictures that docs/page.md shows, and the plots."""
    question = studio.open("/", 390, 844, dark=True)
    _shoot(question, "page-question.png")
    jobs = studio.open("/jobs", 1280, 860, dark=False)
    _shoot(jobs, "page-jobs.png")
    job = studio.open("/jobs/{flaky}", 1180, 1030, dark=False)
    job.locator("tr.add", has_text="with freeze_time").get_by_role("button").click()
    job.keyboard.type("Please freeze in a fixture; other tests need it too.")
    job.mouse.move(2, 2)
    job.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    _shoot(job, "page-job.png")
    _shoot(studio.open("/statistics", 1280, 560, dark=True), "page-statistics.png")


def _shoot(page: Page, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=str(PICTURES / name))
    page.context.close()
    print(PICTURES / name)


def _all(studio: Studio, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for dark in (False, True):
        for width, height in SIZES:
            for name, path in VIEWS.items():
                page = studio.open(path, width, height, dark=dark)
                page.screenshot(
                    path=str(directory / f"{name}-{width}-{'dark' if dark else 'light'}.png"), full_page=True
                )
                page.context.close()


if __name__ == "__main__":
    main(sys.argv[1:])

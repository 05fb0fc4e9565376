"""Every view: accessible, within the screen, with few bytes, and complete without script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mam.stores.port import Query
from tests.page.visitor import DESK, LAPTOP, PHONE

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.page.visitor import Visitor

pytestmark = pytest.mark.external

VIEWS = {
    "needs me": "/", "jobs": "/jobs", "found": "/jobs?state=error&label=docs", "nothing found": "/jobs?q=zebra",
    "completed": "/jobs/{flaky}", "running": "/jobs/{importer}", "asking": "/jobs/{login}", "failed": "/jobs/{notes}",
    "pending": "/jobs/{review}", "waiting": "/jobs/{book}", "earlier output": "/jobs/{flaky}?until=800",
    "one file": "/jobs/{flaky}?file=report.md", "record": "/jobs/{flaky}/record", "edit": "/jobs/{review}/edit",
    "artifact": "/jobs/{flaky}/artifacts//home/anna/shop/report.md", "new job": "/jobs/new", "workers": "/workers",
    "statistics": "/statistics", "week": "/statistics?days=7", "health": "/health", "tokens": "/tokens",
    "notifications": "/notifications",
    "help": "/help", "missing": "/nowhere", "no job": "/jobs/ffffffff",
}  # fmt: skip
SCREENS = {"desk": DESK, "laptop": LAPTOP, "phone": PHONE, "small phone": (320, 640)}


def opened(visitor: Visitor, view: str, **options: Any) -> Page:
    return visitor.open(
        VIEWS[view].format(**{name.replace(" ", "_"): job for name, job in visitor.ids.items()}), **options
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(visitor: Visitor, axe: str, dark: bool) -> None:
    """In every view, on a desk and on a phone."""
    found = []
    for size in (DESK, PHONE):
        page = opened(visitor, "needs me", size=size, dark=dark)
        for view, path in VIEWS.items():
            page.goto(visitor.server.url + path.format(**visitor.ids))
            page.evaluate(axe)
            result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            found += [
                (view, size[0], one["id"], [node["html"][:160] for node in one["nodes"][:3]])
                for one in result["violations"]
            ]
    assert found == []


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_is_wider_than_the_screen(visitor: Visitor, screen: str) -> None:
    page = opened(visitor, "needs me", size=SCREENS[screen])
    wide = []
    for view, path in VIEWS.items():
        page.goto(visitor.server.url + path.format(**visitor.ids))
        more = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wide += [(view, more)] if more > 0 else []
    assert wide == []


def test_every_button_shows_the_command_that_does_the_same(visitor: Visitor) -> None:
    """All but those that only choose what this browser shows, and the one that asks this browser for notifications."""
    page = opened(visitor, "needs me")
    bare = []
    for view, path in VIEWS.items():
        page.goto(visitor.server.url + path.format(**visitor.ids))
        forms = page.locator("main form[method=post]").filter(has=page.locator("button:not([disabled])"))
        bare += [(view, one.inner_text()) for one in forms.all() if not one.locator("code.cmd").count()]
    assert bare == []


def test_every_view_is_complete_without_script(visitor: Visitor) -> None:
    page = opened(visitor, "needs me", script=False)
    for view, path in VIEWS.items():
        answer = page.goto(visitor.server.url + path.format(**visitor.ids))
        assert answer is not None
        assert answer.status == (404 if view in ("missing", "no job") else 200), view
        assert page.inner_text("h1").strip(), view
        assert page.get_by_role("navigation", name="Pages").is_visible(), view


def test_buttons_of_a_phone_are_as_large_as_a_thumb(visitor: Visitor) -> None:
    page = opened(visitor, "needs me", size=PHONE, dark=True)
    for name in ("Allow once", "Deny"):
        box = page.get_by_role("button", name=name, exact=True).first.bounding_box()
        assert box is not None
        assert (box["height"] >= 48, box["width"] >= 140) == (True, True), name


@pytest.mark.parametrize("view", ["needs me", "jobs", "completed"])
def test_a_page_takes_few_bytes(visitor: Visitor, view: str) -> None:
    """All that a first visit loads, as it goes over the network."""
    opened(visitor, "help")  # logs in
    page = visitor.context().new_page()
    sizes: list[int] = []
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    page.goto(visitor.server.url + VIEWS[view].format(**visitor.ids), wait_until="load")
    assert 1_000 < sum(sizes) < 100_000


def test_times_are_those_of_the_viewers_zone(visitor: Visitor) -> None:
    page = opened(visitor, "record")
    cell = page.locator("time[data-form=clock]").first
    title = cell.get_attribute("title") or ""
    assert "GMT+1" in title or "CET" in title
    assert cell.get_attribute("datetime", timeout=1000)


def test_the_theme_of_the_viewer_wins(visitor: Visitor) -> None:
    page = opened(visitor, "jobs", dark=False)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    page.wait_for_selector("html[data-theme=dark]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert page.url.startswith(f"{visitor.server.url}/jobs")


def test_an_empty_page_says_what_to_do_first(visitor: Visitor) -> None:
    for job in visitor.registry.select(Query()):
        if not job.status.ended:
            visitor.registry.cancel(job.job_id)
        elif job.status == "error":
            visitor.registry.mark_seen(job.job_id, by="anna")
    page = opened(visitor, "needs me")
    assert page.get_by_text("No one waits for you").is_visible()
    assert page.get_by_role("link", name="New job").is_visible()
    assert page.title() == "Needs me · mam"

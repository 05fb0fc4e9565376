"""Everything that the page does, by keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.jobs.question import questions_of
from mam.jobs.status import CANCELLED

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.page.visitor import Visitor

pytestmark = pytest.mark.external

STOPS = 80
"""More stops of the tab key than any page of the scene has."""


def tab_to(page: Page, selector: str) -> None:
    """Presses the tab key until this element has the focus."""
    for _ in range(STOPS):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the tab key does not reach {selector}")


def test_a_job_is_handed_out(visitor: Visitor) -> None:
    page = visitor.live("/jobs")
    page.keyboard.press("n")
    page.wait_for_url("**/jobs/new")
    tab_to(page, "#prompt")
    page.keyboard.type("Sort the imports")
    tab_to(page, "#label")
    page.keyboard.type("billing")
    tab_to(page, "form.form button.primary")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note.ok")
    assert (visitor.newest().prompt, visitor.newest().agent_session) == ("Sort the imports", "billing")


def test_a_question_is_denied_with_a_reason(visitor: Visitor) -> None:
    page = visitor.live("/")
    page.keyboard.press("j")
    tab_to(page, ".question summary")
    page.keyboard.press("Enter")
    tab_to(page, "textarea[name=reason]")
    page.keyboard.type("not here")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('1 question, 1 failure')")
    denied = questions_of(visitor.job("login"))[0]
    assert (denied.answer, denied.reason) == ("deny", "not here")


def test_selected_jobs_are_cancelled(visitor: Visitor) -> None:
    page = visitor.live("/jobs?state=pending")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.wait_for_selector("text=1 job selected")
    page.keyboard.press("c")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note:has-text('1 job cancelled')")
    assert visitor.job("review").status is CANCELLED


def test_a_line_gets_a_comment_that_is_sent(visitor: Visitor) -> None:
    page = visitor.live(f"/jobs/{visitor.ids['flaky']}")
    tab_to(page, "td.n button")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("Why?")
    tab_to(page, "[data-review-form] button.primary")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note.ok")
    assert "tests/test_calendar.py, line 2:\n     \nWhy?" in visitor.newest().prompt


def test_a_conversation_goes_on_and_a_failure_is_seen(visitor: Visitor) -> None:
    page = visitor.live(f"/jobs/{visitor.ids['flaky']}")
    tab_to(page, "#composer textarea")
    page.keyboard.type("Go on")
    tab_to(page, "#composer button")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note.ok")
    assert (visitor.newest().continues, visitor.newest().prompt) == (visitor.ids["flaky"], "Go on")
    page.goto(f"{visitor.server.url}/jobs/{visitor.ids['notes']}")
    tab_to(page, "[data-verb=seen]")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note.ok")
    assert (visitor.job("notes").seen or {})["by"] == "local"


def test_a_label_is_paused_and_a_worker_stopped(visitor: Visitor) -> None:
    page = visitor.live("/workers")
    tab_to(page, "button[value=stop]")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note:has-text('Asked to stop')")
    tab_to(page, "form[action$='/pauses'] button")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note:has-text('Paused')")
    assert len(visitor.registry.store.pauses()) == 1

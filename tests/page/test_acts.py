"""Every act of the page, as a person does it; and what the store holds afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.jobs.question import questions_of
from mam.jobs.status import CANCELLED, PENDING
from tests.page.visitor import PHONE

if TYPE_CHECKING:
    from tests.page.visitor import Visitor

pytestmark = pytest.mark.external


def test_an_answer_goes_on_to_the_next_question(visitor: Visitor) -> None:
    page = visitor.live("/")
    assert page.title().startswith("(3) ")
    page.get_by_role("button", name="Allow once").first.click()
    page.wait_for_selector("h1:has-text('1 question, 1 failure')")
    answered = questions_of(visitor.job("login"))[0]
    assert (answered.answer, answered.answered_by) == ("allow", "local")
    assert "Migrate the invoices" in page.evaluate("document.activeElement.textContent")
    assert page.title().startswith("(2) ")
    page.get_by_role("button", name="legacy_currency").click()
    page.wait_for_selector("h1:text-is('1 failure')")
    assert questions_of(visitor.job("invoices"))[0].answer == "legacy_currency"


@pytest.mark.parametrize("script", [True, False], ids=["script", "without script"])
def test_a_denial_carries_its_reason(visitor: Visitor, script: bool) -> None:
    page = visitor.open("/", script=script, size=PHONE)
    card = page.locator(".question").first
    card.get_by_text("Deny with a reason").click()
    card.get_by_role("textbox").fill("not on this machine")
    card.get_by_role("button", name="Deny with this reason").click()
    page.wait_for_selector("h1:has-text('1 question, 1 failure')")
    denied = questions_of(visitor.job("login"))[0]
    assert (denied.answer, denied.reason) == ("deny", "not on this machine")


def test_of_two_browsers_one_wins_and_the_other_is_told(visitor: Visitor) -> None:
    first, second = visitor.live("/"), visitor.live("/")
    second.keyboard.press("p")  # the second one does not see that the question is gone
    second.wait_for_selector("#live:has-text('paused')")
    first.get_by_role("button", name="Allow once").click()
    first.wait_for_selector("h1:has-text('1 question, 1 failure')")
    second.get_by_role("button", name="Deny", exact=True).click()
    second.wait_for_selector(".note:has-text('was answered by local')")
    assert questions_of(visitor.job("login"))[0].answer == "allow"


def test_keys_alone_answer_a_question_and_open_a_job(visitor: Visitor) -> None:
    page = visitor.live("/")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.wait_for_selector("h1:has-text('1 question, 1 failure')")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs")
    page.wait_for_selector("#live[data-state=live]")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*")
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("allow or deny").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("j x a")  # which are letters now
    assert page.input_value("#find") == "j x a"


@pytest.mark.parametrize("script", [True, False], ids=["script", "without script"])
def test_a_new_job_is_registered(visitor: Visitor, script: bool) -> None:
    page = visitor.open("/jobs/new", script=script)
    page.fill("#prompt", "Do it\n\nwith **care**")
    if script:
        page.reload()
        assert page.input_value("#prompt") == "Do it\n\nwith **care**", "a draft stays in the browser"
    page.get_by_role("button", name="Preview").click()
    assert page.locator("#preview strong").inner_text() == "care"
    page.select_option("#agent", "codex")
    page.fill("#label", "billing")
    page.get_by_role("button", name="Register").click()
    page.wait_for_selector(".note.ok")
    made = visitor.newest()
    assert (made.prompt, made.agent, made.agent_session) == ("Do it\n\nwith **care**", "codex", "billing")
    assert (made.workspace, made.may_ask, made.permissions) == ("fresh", True, "edit")


def test_a_job_works_in_a_worktree_of_a_directory_and_the_next_one_is_offered_the_same(visitor: Visitor) -> None:
    page = visitor.open("/jobs/new")
    page.fill("#prompt", "Do it")
    page.fill("#workdir", "/home/anna/shop")
    page.get_by_label("in a git worktree of it").check()
    page.get_by_role("button", name="Register").click()
    page.get_by_role("link", name="Register another one").click()
    assert (visitor.newest().workspace, visitor.newest().workdir) == ("worktree", "/home/anna/shop")
    assert page.input_value("#workdir") == "/home/anna/shop"
    page.fill("#prompt", "Do it there")
    page.get_by_label("in a git worktree of it").uncheck()
    page.get_by_role("button", name="Register").click()
    page.wait_for_selector(".note.ok")
    assert visitor.newest().workspace == "workdir"


def test_a_wrong_field_keeps_what_was_typed(visitor: Visitor) -> None:
    page = visitor.open("/jobs/new")
    page.fill("#prompt", "Do it")
    page.get_by_text("Checks, order and model").click()
    page.fill("#priority", "high")
    page.get_by_role("button", name="Register").click()
    assert "'high' is not a whole number" in page.get_by_role("alert").inner_text()
    assert page.input_value("#prompt") == "Do it"


def test_a_job_is_edited_and_cancelled_after_a_question(visitor: Visitor) -> None:
    page = visitor.live(f"/jobs/{visitor.ids['review']}")
    page.get_by_role("link", name="Edit").click()
    page.fill("#e-priority", "7")
    page.get_by_role("button", name="Save").click()
    page.wait_for_selector(".note.ok")
    assert visitor.job("review").priority == 7
    page.locator("#head").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Leave it").click()
    assert visitor.job("review").status is PENDING
    page.locator("#head").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.wait_for_selector(".chip:has-text('cancelled')")
    assert visitor.job("review").status is CANCELLED


def test_selected_jobs_are_acted_on_together(visitor: Visitor) -> None:
    page = visitor.live("/jobs")
    for name in ("review", "book", "flaky"):
        page.check(f"#job-{visitor.ids[name]} .pick")
    page.wait_for_selector("text=3 jobs selected")
    page.locator("#bulk").get_by_role("button", name="Cancel").click()
    page.wait_for_selector(".note:has-text('2 jobs cancelled; 1 could not be')")
    assert {visitor.job(name).status for name in ("review", "book")} == {CANCELLED}


def test_a_failure_is_retried_and_seen(visitor: Visitor) -> None:
    page = visitor.live("/")
    page.locator(f"#job-{visitor.ids['notes']}").get_by_role("button", name="Seen").click()
    page.wait_for_selector("h1:text-is('2 questions')")
    assert (visitor.job("notes").seen or {})["by"] == "local"
    page.goto(f"{visitor.server.url}/jobs/{visitor.ids['notes']}")
    page.get_by_role("button", name="Retry").click()
    page.wait_for_selector(".note.ok")
    assert visitor.newest().retry_of == visitor.ids["notes"]


def test_the_composer_continues_an_ended_job_and_answers_one_that_asks(visitor: Visitor) -> None:
    page = visitor.open(f"/jobs/{visitor.ids['flaky']}")
    page.fill("#composer textarea", "Also test the end of the year")
    page.get_by_role("button", name="Send", exact=True).click()
    page.wait_for_selector(".note.ok")
    assert (visitor.newest().continues, visitor.newest().prompt) == (
        visitor.ids["flaky"],
        "Also test the end of the year",
    )
    page.goto(f"{visitor.server.url}/jobs/{visitor.ids['login']}")
    page.fill("#composer textarea", "use the test database")
    page.get_by_role("button", name="Deny with this", exact=True).click()
    page.wait_for_selector(".note.ok")
    assert questions_of(visitor.job("login"))[0].reason == "use the test database"


def test_comments_on_lines_go_back_as_one_continuation(visitor: Visitor) -> None:
    page = visitor.open(f"/jobs/{visitor.ids['flaky']}")
    file = page.locator("details[data-path='tests/test_calendar.py']")
    file.locator("tr.add", has_text="with freeze_time").get_by_role("button").click()
    page.keyboard.type("Please freeze in a fixture.")
    page.reload()
    assert (
        page.get_by_label("Comment on line 8 of tests/test_calendar.py").input_value() == "Please freeze in a fixture."
    )
    page.locator("details[data-path='report.md'] tr.add").first.get_by_role("button").click()
    page.keyboard.type("Which ticket?")
    page.get_by_role("button", name="Send as one continuation").click()
    page.wait_for_selector(".note.ok")
    made = visitor.newest()
    assert made.continues == visitor.ids["flaky"]
    assert (
        'tests/test_calendar.py, line 8:\n    +    with freeze_time("2026-06-19 23:59:59.9"):\nPlease freeze'
        in made.prompt
    )
    assert "report.md, line 1:\n    +# Why the calendar test was flaky\nWhich ticket?" in made.prompt
    page.goto(f"{visitor.server.url}/jobs/{visitor.ids['flaky']}")
    assert page.locator("tr.remark").count() == 0, "what was sent is no draft any more"


def test_a_comment_on_an_earlier_state_is_outdated(visitor: Visitor) -> None:
    page = visitor.open(f"/jobs/{visitor.ids['flaky']}")
    page.locator("tr.add", has_text="with freeze_time").get_by_role("button").click()
    page.keyboard.type("old")
    page.evaluate("for (const key of Object.keys(localStorage)) if (key.startsWith('mam-review'))"
                  " localStorage.setItem(key, localStorage.getItem(key).replace('9b01d7e', '0000000'))")  # fmt: skip
    page.reload()
    assert page.get_by_text("line 8, of an earlier state of the file").is_visible()
    page.get_by_role("button", name="Send as one continuation").click()
    page.wait_for_selector(".note.ok")
    assert "tests/test_calendar.py, line 8 (of an earlier state of the file):" in visitor.newest().prompt


def test_a_review_without_script_has_one_comment_and_a_remark(visitor: Visitor) -> None:
    page = visitor.open(f"/jobs/{visitor.ids['flaky']}", script=False)
    page.locator("[data-remark] summary").click()
    page.fill("#remark", "Good work")
    page.fill("#c-line", "3")
    page.fill("#c-text", "sort this")
    page.get_by_role("button", name="Send as one continuation").click()
    page.wait_for_selector(".note.ok")
    assert "tests/test_calendar.py, line 3:\nsort this" in visitor.newest().prompt
    assert "the whole change:\nGood work" in visitor.newest().prompt


def test_a_label_is_paused_and_resumed_and_a_worker_drained(visitor: Visitor) -> None:
    page = visitor.live("/workers")
    page.get_by_role("button", name="Pause reviews").click()
    page.wait_for_selector("text=label reviews paused")
    assert [pause.label for pause in visitor.registry.store.pauses()] == ["reviews"]
    page.get_by_role("button", name="Resume").click()
    page.wait_for_selector(".note:has-text('Resumed')")
    assert visitor.registry.store.pauses() == []
    page.goto(f"{visitor.server.url}/jobs/{visitor.ids['importer']}")
    page.get_by_role("button", name="Pause claude-code").click()
    page.wait_for_selector(".note:has-text('Paused')")
    assert [pause.agent for pause in visitor.registry.store.pauses()] == ["claude-code"]
    page.goto(f"{visitor.server.url}/workers")
    page.get_by_role("button", name="Drain").first.click()
    page.wait_for_selector(".chip:has-text('draining')")


def test_filters_are_in_the_address_and_back_works(visitor: Visitor) -> None:
    page = visitor.live("/jobs")
    page.select_option("select[name=state]", "error")
    page.wait_for_url("**/jobs?state=error")
    assert page.locator(".job").count() > 1
    page.fill("#find", "release notes")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?q=release+notes")
    assert page.locator(".job .what a").all_inner_texts() == ["Write the release notes for 2.4"]
    page.go_back()
    page.wait_for_url("**/jobs?state=error")


def test_an_artifact_is_shown_and_saved(visitor: Visitor) -> None:
    page = visitor.open(f"/jobs/{visitor.ids['flaky']}")
    page.get_by_role("link", name="report.md", exact=True).click()
    assert page.locator(".prose strong").inner_text() == "200 runs"
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save").click()
    assert saved.value.suggested_filename == "report.md"

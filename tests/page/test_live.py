"""Live updates: they arrive, they disturb no one, and they survive a server that goes away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam import questions
from mam.jobs.question import Draft
from mam.stores.outputs import AttemptId, OutputLimits, Piece

if TYPE_CHECKING:
    from tests.page.visitor import Visitor

pytestmark = pytest.mark.external


def register(visitor: Visitor, prompt: str) -> str:
    return visitor.registry.register(prompt=prompt, agent="codex", label="shop").job.job_id


def test_a_new_job_appears_and_its_state_follows(visitor: Visitor) -> None:
    page = visitor.live("/jobs")
    job = register(visitor, "Arrive by itself")
    page.wait_for_selector(f"#job-{job} .chip:has-text('pending')")
    visitor.registry.cancel(job, reason="no longer needed")
    page.wait_for_selector(f"#job-{job} .chip:has-text('cancelled')")
    assert "no longer needed" in page.inner_text(f"#job-{job}")


def test_rows_do_not_move_under_the_mouse(visitor: Visitor) -> None:
    page = visitor.live("/jobs")
    row = page.locator(f"#job-{visitor.ids['book']}")
    row.hover()
    before = row.bounding_box()
    job = register(visitor, "Come later")
    visitor.registry.publish(visitor.ids["hints"], event="progress", detail="all tests pass", attempt=1)
    page.wait_for_selector(f"#job-{visitor.ids['hints']} .now:has-text('all tests pass')")
    page.wait_for_selector("#pill button")
    assert row.bounding_box() == before
    assert page.locator(f"#job-{job}").count() == 0
    page.mouse.move(2, 2)
    page.wait_for_selector(f"#job-{job}")


def test_what_someone_types_stays(visitor: Visitor) -> None:
    page = visitor.live(f"/jobs/{visitor.ids['importer']}")
    page.locator(".tool summary").first.click()
    page.fill("#composer textarea", "half a sen")
    visitor.registry.publish(visitor.ids["importer"], event="progress", detail="the reader is done", attempt=1)
    page.wait_for_selector("#head:has-text('the reader is done')")
    assert page.input_value("#composer textarea") == "half a sen"
    assert page.locator(".tool[open]").count() == 1


def test_new_output_appears_on_the_page_of_a_running_job(visitor: Visitor) -> None:

    page = visitor.live(f"/jobs/{visitor.ids['hints']}")
    job = visitor.job("hints")
    data = b'{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Now the last module."}}\n'
    attempt = AttemptId(job_id=job.job_id, attempt=1, claim_id=job.claim_id)
    visitor.registry.store.outputs.append(attempt, Piece(start=0, data=data), OutputLimits())
    page.wait_for_selector("#conversation:has-text('Now the last module.')")


def test_the_page_of_a_job_that_asks_and_ends_offers_what_can_be_done_then(visitor: Visitor) -> None:
    page = visitor.live(f"/jobs/{visitor.ids['importer']}")
    job, box = visitor.job("importer"), page.locator("#composer textarea")
    assert "when this job has ended" in (box.get_attribute("placeholder") or "")
    asked = questions.ask(visitor.registry, job.job_id, Draft(kind="question", text="Which?"), attempt=job.attempt)
    page.wait_for_selector("#composer textarea[placeholder='Your answer…']")
    box.fill("the new one")
    page.get_by_role("button", name="Answer").last.click()
    page.wait_for_selector(".note.ok")
    assert questions.find(visitor.registry, asked.id).question.answer == "the new one"
    visitor.registry.cancel(job.job_id)
    page.wait_for_selector("#composer:has-text('It cannot be continued: its conversation never began')")
    page.wait_for_selector("#side:not(:has-text('Pause claude-code'))")


def test_the_page_survives_a_server_that_is_killed(visitor: Visitor) -> None:
    page = visitor.live("/jobs")
    visitor.server.kill()
    page.wait_for_selector("#live[data-state=lost]")
    job = register(visitor, "Registered meanwhile")
    visitor.server.start()
    page.wait_for_selector(f"#job-{job}", timeout=60_000)
    page.wait_for_selector("#live[data-state=live]")


def test_on_a_slow_network_an_answer_is_sent_once(visitor: Visitor) -> None:
    page = visitor.live("/")
    tools = page.context.new_cdp_session(page)
    tools.send("Network.enable")
    slow = {"offline": False, "latency": 700, "downloadThroughput": 20_000, "uploadThroughput": 10_000}
    tools.send("Network.emulateNetworkConditions", slow)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    card = page.locator(".question").first
    card.get_by_role("button", name="Allow once").dblclick()
    page.wait_for_selector("h1:has-text('1 question, 1 failure')")
    assert len(sent) == 1
    page.reload()
    page.wait_for_selector("#live[data-state=live]", timeout=60_000)
    assert page.locator(".question").count() == 1


def test_two_tabs_share_one_connection(visitor: Visitor) -> None:
    first = visitor.live("/jobs")
    streams = []
    second = first.context.new_page()
    second.on("request", lambda request: streams.append(request.url) if "/events" in request.url else None)
    second.goto(f"{visitor.server.url}/jobs")
    second.wait_for_selector("#live[data-state=live]")
    job = register(visitor, "Seen by both")
    second.bring_to_front()
    second.wait_for_selector(f"#job-{job}")
    assert streams == []
    first.close()
    other = register(visitor, "Seen by the one that is left")
    second.wait_for_selector(f"#job-{other}")
    assert len(streams) == 1

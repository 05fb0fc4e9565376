"""Hostile prompts, names, outputs, diffs and questions do nothing in a real browser."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from mam import questions
from mam.jobs import worker_acts
from mam.jobs.question import Draft
from mam.stores.outputs import ARTIFACT, DIFF, AttemptId, OutputLimits, Piece
from mam.stores.port import ClaimRequest
from tests.serve.pages.hostile import HIDDEN, XSS

if TYPE_CHECKING:
    from tests.page.visitor import Visitor

pytestmark = pytest.mark.external

ALL = "\n\n".join(text.replace("\x00", "") for text in (*XSS, *HIDDEN))
NAME = "<img src=x onerror=alert(1)>"


def test_nothing_of_it_runs(visitor: Visitor) -> None:
    """The visitor fails the test for any dialog, any error of a script and anything that the policy had to refuse."""
    registry = visitor.registry
    job = registry.register(prompt=ALL, agent=NAME, label=NAME, model=None).job
    request = ClaimRequest(label=NAME, owner=NAME, lease_seconds=3600, supervised=True, job_id=job.job_id)
    claimed = registry.claim(request)
    assert claimed is not None
    run = {"host": NAME, "place": NAME, "branch": NAME}
    registry.act(job.job_id, "started", partial(worker_acts.started, attempt=1, run=run))
    registry.publish(job.job_id, event="progress", detail=ALL[:200].replace("\n", " "), attempt=1)
    draft = Draft(kind="permission", text=ALL, tool=NAME, input={"command": ALL, NAME: ALL})
    questions.ask(registry, job.job_id, draft, attempt=1)
    questions.ask(registry, job.job_id, Draft(kind="question", text=ALL, choices=(NAME, "'\">")), attempt=1)
    attempt = AttemptId(job_id=job.job_id, attempt=1, claim_id=claimed.claim_id)
    outputs = registry.store.outputs
    outputs.append(attempt, Piece(start=0, data=ALL.encode()), OutputLimits())
    diff = f"diff --git a/{NAME} b/{NAME}\n--- a/{NAME}\n+++ b/{NAME}\n@@ -1 +1,9 @@ {NAME}\n" + "".join(
        f"+{line}\n" for line in ALL.split("\n")
    )
    outputs.put(attempt, DIFF, "", diff.encode(), OutputLimits())
    outputs.put(attempt, ARTIFACT, f"{NAME}.md", ALL.encode(), OutputLimits())
    paths = ("/", "/jobs", f"/jobs/{job.job_id}", f"/jobs/{job.job_id}/record", "/workers", "/jobs/new", "/statistics",
             f"/jobs/{job.job_id}/artifacts/%3Cimg%20src=x%20onerror=alert(1)%3E.md", f"/jobs/{job.job_id}/edit",
             "/jobs?q=%3Cscript%3Ealert(1)%3C/script%3E&label=%22%3E%3Cscript%3E", "/%3Cscript%3Ealert(1)%3C/script%3E",
             "/?done=%3Cscript%3E", "/jobs?done=cancel&count=%3Cb%3E")  # fmt: skip
    page = visitor.live("/")
    for path in paths:
        page.goto(visitor.server.url + path)
        assert (
            page.evaluate(
                "document.querySelectorAll('main img, main iframe, main script, main style, main base').length"
            )
            == 0
        )
        assert page.evaluate("[...document.querySelectorAll('main a')].every((a) => /^https?:|^mailto:/.test(a.href))")
        text = page.inner_text("main")
        assert not any(mark in text for mark in ("\u202e", "\u2066", "\u200b"))
        for link in page.query_selector_all("main a[target=_blank]"):
            assert "noopener" in (link.get_attribute("rel") or "")


def test_a_form_of_another_site_does_nothing(visitor: Visitor) -> None:
    page = visitor.open("/")
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    import httpx

    url = f"{visitor.server.url}/jobs/{visitor.ids['review']}/cancel"
    for headers in (
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"origin": visitor.server.url},
    ):
        answer = httpx.post(url, cookies=cookies, headers=headers, data={"csrf": "wrong"}, trust_env=False)
        assert answer.status_code == 403
    assert visitor.job("review").status == "pending"

"""What tokens of few rights try: to find questions of others, to go on after they were revoked, to answer blindly."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from mam.access.credentials import create_code, revoke_token
from mam.access.registry import AuthorizedRegistry
from mam.serve import auth
from mam.stores.port import Query
from tests.serve.flows import STEPS, World

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from mam.stores.port import ClaimRequest
    from tests.serve.serving import Serving


def page_of(served: Serving, *scopes: str) -> httpx.Client:
    """A browser that is logged in with a token of these scopes."""
    served.token(*scopes, name="person")
    browser = served.browser()
    browser.headers["origin"] = served.url
    code = create_code(served.registry.store, "person").secret
    assert browser.post("/login", data={"code": code}).status_code == 303
    return browser


def csrf_of(text: str) -> str:
    return text.partition('name="csrf" value="')[2].partition('"')[0]


@pytest.mark.parametrize("scope", ["submit", "answer"])
def test_a_prefix_of_a_question_tells_nothing_about_the_jobs_of_others(served: Serving, scope: str) -> None:
    client = served.client(scope, name="caller")
    others = [World(served, client, owner="somebody-else").asking().job_id for _ in range(40)]
    first = {job_id[0] for job_id in others}
    taken = next(letter for letter in first if sum(job_id[0] == letter for job_id in others) > 1)

    for prefix in (taken, others[0][:8], others[0][:31]):
        answer = client.get(f"/questions/{prefix}.1")
        unknown = client.get("/questions/nothing-begins-so.1")
        assert answer.status_code == unknown.status_code == 404, answer.text
        assert answer.text.replace(f"{prefix}.1", "?") == unknown.text.replace("nothing-begins-so.1", "?")


def test_a_stream_that_is_never_silent_ends_with_its_token(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "LOOK_SECONDS", 0.0)
    client = served.client("read", name="reader")
    with client.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        revoke_token(served.registry.store, "reader")
        ended = False
        for _ in range(200):
            served.registry.register(prompt="go on", agent="codex")
            if next(lines, None) is None:
                ended = True
                break
        assert ended


def test_output_is_followed_only_as_long_as_the_token_lives(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "LOOK_SECONDS", 0.0)
    client = served.client("read", name="reader")
    job = World(served, client).running()
    with client.stream("GET", f"/jobs/{job.job_id}/output?follow=true") as stream:
        lines = stream.iter_lines()
        next(lines)
        revoke_token(served.registry.store, "reader")
        assert [line for line in lines if line] == []


def test_a_claim_that_waits_gets_no_job_after_its_token_was_revoked(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, before = Event(), AuthorizedRegistry.claim

    def claim(self: AuthorizedRegistry, request: ClaimRequest) -> object:
        found = before(self, request)
        asked.set()
        return found

    monkeypatch.setattr(AuthorizedRegistry, "claim", claim)
    client, answers = served.client("work", name="worker"), list[int]()
    waiting = Thread(
        target=lambda: answers.append(client.post("/claims", json={"label": "late", "wait": 60}).status_code)
    )
    waiting.start()
    assert asked.wait(60)
    revoke_token(served.registry.store, "worker")
    job = served.registry.register(prompt="late", agent="codex", label="late").job
    waiting.join(60)

    assert answers == [401]
    assert served.registry.get(job.job_id).status == "pending"


# -- the page ----------------------------------------------------------------------------------------------------------


def test_a_form_without_what_was_shown_answers_nothing(served: Serving) -> None:
    browser = page_of(served, "read", "answer")
    job = World(served).asking()
    csrf = csrf_of(browser.get("/").text)

    blind = browser.post(f"/questions/{job.job_id}.1", data={"csrf": csrf, "answer": "allow"})

    assert blind.status_code == 409
    assert served.registry.get(job.job_id).questions[0].get("answer") is None


def test_a_person_who_may_only_answer_sees_the_questions(served: Serving) -> None:
    browser = page_of(served, "answer")
    job = World(served).asking()

    answer = browser.get("/")

    assert answer.status_code == 200, answer.text
    assert f"/questions/{job.job_id}.1" in answer.text
    assert "git push" in answer.text


def test_the_form_of_a_new_job_takes_a_repository(served: Serving) -> None:
    browser = page_of(served, "submit")
    fields = {
        "csrf": csrf_of(browser.get("/jobs/new").text), "prompt": "fix it", "agent": "codex", "repo": "me/project",
        "branch": "next",
    }  # fmt: skip

    answer = browser.post("/jobs", data=fields)

    assert answer.status_code == 303, answer.text
    (job,) = served.registry.select(Query())
    assert job.repository == {"name": "me/project", "branch": "next", "push": False, "pull_request": False}


def test_no_answer_but_that_to_a_claim_holds_the_claim_id(served: Serving) -> None:
    world = World(served, served.client("admin", name="boss"))
    job = world.asking()
    browser = page_of(served, "admin")
    assert job.claim_id is not None
    own = f"/jobs/{job.job_id}"
    for path in (own, f"{own}/show", f"{own}/explain", f"{own}/events", "/jobs", "/questions", "/workers",
                 f"{own}/conversation", "/events?follow=false&after=start", "/stats"):  # fmt: skip
        assert job.claim_id not in world.client.get(path).text, path
    for path in ("/", "/jobs", own, f"{own}/record", "/workers"):
        assert job.claim_id not in browser.get(path).text, path
    assert STEPS["pick_job"](world).headers["mam-claim"]


def test_hidden_characters_of_names_show_on_every_page(served: Serving) -> None:
    """Except in the values of forms, which are sent as they are, and which no one reads as they stand."""
    import re

    odd, browser = "a\u202eb<i>", page_of(served, "admin")
    job = served.registry.register(prompt=odd, agent=odd, label=odd, key=odd, model="m").job
    for path in ("/", "/jobs", "/jobs/new", f"/jobs/{job.job_id}", f"/jobs/{job.job_id}/record", "/workers"):
        text = re.sub(r' value="[^"]*"', "", browser.get(path).text)
        text = re.sub(r"<textarea.*?</textarea>", "", text, flags=re.S)
        shown = re.sub(r"<[^>]*>", "", text)
        assert "\u202e" not in shown, (path, shown[max(0, shown.index("\u202e") - 200) :][:300])
        assert "b<i>" not in text, path


def test_half_a_character_is_refused_before_a_store_sees_it(tmp_path: Path) -> None:
    """JSON can write it; a database cannot."""
    from mam.registry import Registry
    from mam.stores.files.store import FilesStore, create_files_store
    from tests.serve.serving import serving

    json = {"content-type": "application/json"}
    listing = rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{"label":"\ud800"}}}'
    place = str(tmp_path / "jobs")
    create_files_store(place)
    with serving(Registry(FilesStore(place))) as served:
        client = served.client("admin", name="boss")
        paused = client.post("/pauses", content=rb'{"reason":"\ud800"}', headers=json)
        listed = client.post(f"{served.url}/mcp", content=listing, headers=json)

        assert paused.status_code == 422
        assert "not valid UTF-8" in listed.json()["result"]["content"][0]["text"]
        assert served.registry.store.pauses() == []

"""The page over HTTP: rights, addresses below a path, errors that help, headers, and that GET changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from mam import questions
from mam.jobs.question import Draft
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.stores.port import Query
from mam.util.clock import SystemClock
from tests.serve.serving import PATIENCE, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.serve.serving import Serving

VIEWS = (
    "/", "/jobs", "/jobs?q=x&state=asks", "/jobs/new", "/workers", "/statistics", "/health", "/tokens",
    "/notifications", "/help",
)  # fmt: skip
SCOPES = {
    "admin": VIEWS,
    "read": tuple(view for view in VIEWS if view != "/tokens"),
    "answer": ("/", "/jobs/new", "/notifications", "/help"),
    "submit": ("/", "/jobs", "/jobs?q=x&state=asks", "/jobs/new", "/notifications", "/help"),
    "work": ("/jobs/new", "/notifications", "/help"),
}
"""The views that a token of one scope may open."""


def visiting(served: Serving, *scopes: str) -> httpx.Client:
    """A program that opens pages with a token; a form then needs no token of a session."""
    headers = {"authorization": f"Bearer {served.token(*scopes)}"}
    return httpx.Client(base_url=served.url, headers=headers, timeout=PATIENCE, trust_env=False)


@pytest.fixture
def asking(served: Serving) -> str:
    """The id of a question."""
    registry = served.registry
    job = registry.register(prompt="Push it", agent="codex", label="shop").job
    registry.pick("shop", owner="me")
    draft = Draft(kind="permission", text="May it push?", tool="Bash", input={"command": "git push"})
    return questions.ask(registry, job.job_id, draft, attempt=1).id


def test_a_deadline_is_the_time_that_is_left(served: Serving) -> None:
    registry = served.registry
    job = registry.register(prompt="Push it", agent="codex", label="shop").job
    registry.pick("shop", owner="me")
    draft = Draft(kind="permission", text="May it?", tool="Bash", input={"command": "x"}, deadline_seconds=7_300)
    questions.ask(registry, job.job_id, draft, attempt=1)
    with visiting(served, "read", "answer") as client:
        text = client.get("/").text
    assert 'data-form="left">in 2 h</time>: deny' in text


@pytest.mark.parametrize("scope", SCOPES)
def test_each_scope_opens_its_views_and_no_others(served: Serving, asking: str, scope: str) -> None:
    with visiting(served, scope) as client:
        answers = {view: client.get(view).status_code for view in VIEWS}
    assert answers == {view: 200 if view in SCOPES[scope] else 403 for view in VIEWS}


def test_a_viewer_that_only_answers_sees_the_questions_and_nothing_else(served: Serving, asking: str) -> None:
    failed = served.registry.register(prompt="A secret failure", agent="codex").job
    served.registry.fail(failed.job_id, reason="no")
    with visiting(served, "answer") as client:
        page = client.get("/").text
    assert "git push" in page
    assert "A secret failure" not in page


def test_a_job_of_others_does_not_exist_for_a_token_that_submits(served: Serving, asking: str) -> None:
    job = asking.partition(".")[0]
    with visiting(served, "submit") as client:
        for path in (f"/jobs/{job}", f"/jobs/{job}/record", f"/jobs/{job}/version", f"/jobs/{job}/edit", "/jobs/ffff"):
            assert client.get(path).status_code == 404, path
        assert client.post(f"/jobs/{job}/cancel", data={}).status_code == 404


ACTS = {
    "/jobs/{job}/cancel": {}, "/jobs/{job}/retry": {}, "/jobs/{job}/seen": {}, "/jobs/{job}/continue": {"prompt": "x"},
    "/jobs/{job}/edit": {"prompt": "x"}, "/jobs/{job}/review": {"remark": "x"},
    "/jobs": {"prompt": "x", "agent": "codex"}, "/questions/{job}.1": {"answer": "allow"},
    "/pauses": {"verb": "pause", "label": "shop"}, "/workers": {"verb": "stop", "worker": "x"},
    "/jobs/all": {"job": "{job}", "verb": "cancel"},
}  # fmt: skip


@pytest.mark.parametrize("path", ACTS)
def test_a_viewer_that_only_reads_changes_nothing(served: Serving, asking: str, path: str) -> None:
    job, before = asking.partition(".")[0], list(served.registry.select(Query()))
    sent = {name: value.format(job=job) for name, value in ACTS[path].items()}
    with visiting(served, "read") as client:
        answer = client.post(path.format(job=job), data=sent)
    assert answer.status_code in (303, 403, 409, 422)
    assert answer.status_code != 303 or "failed=1" in answer.headers["location"]
    assert list(served.registry.select(Query())) == before
    assert served.registry.store.pauses() == []


def test_no_page_changes_anything_by_being_opened(served: Serving, asking: str) -> None:
    job = asking.partition(".")[0]
    offset = served.registry.store.end_offset()
    paths = (*VIEWS, f"/jobs/{job}", f"/jobs/{job}/record", f"/jobs/{job}/edit", f"/jobs/{job}/version")
    acts = (f"/jobs/{job}/cancel", f"/questions/{asking}", "/jobs/all", "/pauses", "/theme", "/logout")
    with visiting(served, "admin") as client:
        assert [client.get(path).status_code for path in paths] == [200] * len(paths)
        assert all(client.get(path).status_code in (404, 405) for path in acts)
    assert served.registry.store.end_offset() == offset


def test_an_answer_to_another_question_is_refused(served: Serving, asking: str) -> None:
    with visiting(served, "answer") as client:
        digest = served.registry.get(asking.partition(".")[0]).questions[0]["digest"]
        wrong = client.post(f"/questions/{asking}", data={"answer": "allow", "digest": "0" * 64})
        right = client.post(f"/questions/{asking}", data={"answer": "deny", "reason": "no", "digest": digest})
        late = client.post(f"/questions/{asking}", data={"answer": "allow", "digest": digest})
    assert (wrong.status_code, right.status_code, late.status_code) == (409, 303, 409)
    assert "is not the question that was shown" in wrong.text
    assert "was answered by" in late.text


def test_without_a_log_in_the_page_asks_for_one_and_comes_back(served: Serving) -> None:
    with served.browser() as client:
        assert client.get("/jobs?state=error").headers["location"] == "/login?next=/jobs%3Fstate%3Derror"
        assert client.post("/jobs/x/cancel", headers={"origin": served.url}).headers["location"] == "/login"
        assert client.get("/jobs", headers={"x-mam-live": "1"}).status_code == 401
        assert client.get("/manifest.webmanifest").json()["start_url"] == "/"


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_a_form_leads_to_no_other_host(served: Serving, back: str) -> None:
    job = served.registry.register(prompt="x", agent="codex").job
    with visiting(served, "admin") as client:
        assert client.post(f"/jobs/{job.job_id}/cancel", data={"back": back}).headers["location"] == "/?done=cancel"


def test_errors_say_what_happened_and_where_to_go_on(served: Serving) -> None:
    job = served.registry.register(prompt="x", agent="codex").job
    with visiting(served, "admin") as client:
        missing, again = client.get("/jobs/ffffffff"), client.post(f"/jobs/{job.job_id}/retry", data={})
        paths = ("/jobs?since=yesterday", "/statistics?days=8", "/jobs/%00", "/jobs/..%2f..")
        odd = [client.get(path) for path in paths]
        plain = {"content-type": "text/plain"}
        odd += [client.post("/jobs/all", data={}), client.post("/jobs", content=b"\xff", headers=plain)]
    assert (missing.status_code, again.status_code) == (404, 409)
    assert "Nothing was changed" in again.text
    assert "only an ended job is retried" in again.text
    assert all(answer.status_code in (200, 404, 422) for answer in odd)


def test_files_of_the_page_are_kept_only_with_their_version(served: Serving) -> None:
    with visiting(served, "read") as client:
        page = client.get("/").text
        versioned = page.partition('href="')[2] and page.partition('stylesheet" href="')[2].partition('"')[0]
        assert "immutable" in client.get(versioned).headers["cache-control"]
        assert client.get("/static/live.js").headers["cache-control"] == "no-cache"
        policy = client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert " style=" not in page
    assert "<script>" not in page


@pytest.fixture
def below() -> Iterator[Serving]:
    """A server below a path."""
    with serving(Registry(MemoryStore(SystemClock())), path_prefix="/tools/mam") as found:
        yield found


def test_every_address_stays_below_the_path(below: Serving) -> None:
    import re

    job = below.registry.register(prompt="x", agent="codex").job
    headers = {"authorization": f"Bearer {below.token('admin')}"}
    with httpx.Client(headers=headers, timeout=PATIENCE, trust_env=False) as client:
        for path in (*VIEWS, f"/jobs/{job.job_id}", "/nowhere"):
            text = client.get(f"{below.url}{path}").text
            found = re.findall(r'(?:href|src|action|formaction|data-poll|data-events|data-base)="([^"#]*)', text)
            assert found
            assert all(one.startswith("/tools/mam") for one in found if one), path
        answer = client.post(f"{below.url}/jobs/{job.job_id}/cancel", data={})
        assert answer.headers["location"] == f"/tools/mam/jobs/{job.job_id}?done=cancel"
        assert client.get(f"{below.url}/manifest.webmanifest").json()["scope"] == "/tools/mam/"

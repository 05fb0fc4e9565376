"""A client of prompt-valet against mam, on each of its routes. test_curl.py types them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.util.clock import SystemClock
from tests.serve.valet.listener import log_of, send, valet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.serve.serving import Serving


@pytest.fixture
def both() -> Iterator[tuple[Serving, httpx.Client]]:
    with valet(Registry(MemoryStore(SystemClock()))) as found:
        yield found


def test_a_sent_prompt_is_a_job_under_the_id_that_the_answer_names(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    made = send(client, filename="tidy.md")
    assert made.status_code == 201
    receipt = made.json()
    assert set(receipt) == {"job_id", "inbox_path", "created_at"}
    assert receipt["inbox_path"] == f"acme/shop/main/tidy-{receipt['job_id']}.prompt.md"

    job = served.registry.get(receipt["job_id"])
    assert (job.prompt, job.agent, job.agent_session, job.workspace) == ("tidy up", "codex", "inbox", "worktree")
    assert (job.repository or {})["name"] == "acme/shop"
    assert (job.registered_by or "").startswith("valet.")

    (listed,) = client.get("/jobs").json()["jobs"]
    assert listed == client.get(f"/jobs/{job.job_id}").json() | {"age_seconds": listed["age_seconds"]}
    assert listed["state"] == "queued"
    assert (listed["git_owner"], listed["repo_name"], listed["branch_name"]) == ("acme", "shop", "main")
    assert listed["inbox_rel"] == receipt["inbox_path"]
    assert listed["stalled"] is False


def test_front_matter_of_mam_counts_and_other_front_matter_is_prompt(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    ours = send(client, "---\nagent: shell\npriority: 7\n---\necho hello").json()["job_id"]
    job = served.registry.get(ours)
    assert (job.agent, job.priority, job.prompt) == ("shell", 7, "echo hello")

    theirs = send(client, "---\npv:\n  source: api\n---\ntidy up").json()["job_id"]
    assert served.registry.get(theirs).prompt.startswith("---\npv:")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"repo": "nowhere"}, 404),
        ({"branch": "dev"}, 404),
        ({"repo": "docs"}, 400),  # two owners have one
        ({"repo": "  "}, 400),
        ({"filename": "../x.md"}, 400),
        ({"filename": "x.txt"}, 400),
        ({"filename": " "}, 400),
        ({"markdown_text": ""}, 400),
        ({"markdown_text": "---\npriority: many\n---\nx"}, 400),
        ({"markdown_text": 7}, 422),
        ({"markdown_text": "\ud800"}, 400),
        ({"markdown_text": "x" * (8 << 20) + "x"}, 400),
    ],
)
def test_a_wrong_submission_registers_nothing(
    both: tuple[Serving, httpx.Client], body: dict[str, object], code: int
) -> None:
    served, client = both
    whole = {"repo": "shop", "branch": "main", "markdown_text": "tidy up", **body}
    answer = client.post("/jobs", content=json.dumps(whole).encode())
    assert answer.status_code == code
    assert set(answer.json()) == {"detail"}
    assert not served.registry.store.counts()


def test_an_upload_is_all_or_nothing(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    form = {"repo": "acme/docs", "branch": "main"}
    good, bad = ("files", ("a.md", b"first")), ("files", ("b.md", b"\xff\xfe"))
    refused = client.post("/jobs/upload", data=form, files=[good, bad])
    assert refused.status_code == 400
    assert "UTF-8" in refused.json()["detail"]
    assert client.post("/jobs/upload", data=form).status_code == 422
    assert client.post("/jobs/upload", data=form, files=[("files", ("x.txt", b"x"))]).status_code == 400
    assert not served.registry.store.counts()

    made = client.post("/jobs/upload", data=form, files=[good, ("files", ("b.prompt.md", b"second"))])
    assert made.status_code == 201
    first, second = made.json()["jobs"]
    assert served.registry.get(first["job_id"]).prompt == "first"
    assert second["inbox_path"].endswith(f"/b-{second['job_id']}.prompt.md")


def test_lists_by_state_repository_and_limit(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    first, second, third = (send(client, text).json()["job_id"] for text in ("one", "two", "three"))
    served.registry.register(prompt="of no repository", agent="codex")
    served.registry.pick("inbox", owner="a test")
    served.registry.complete(first)
    served.registry.cancel(second)

    def ids(query: str) -> list[str]:
        return [job["job_id"] for job in client.get(f"/jobs?{query}").json()["jobs"]]

    assert ids("") == [third, second, first]
    assert ids("state=SUCCEEDED") == [first]
    assert ids("state=aborted&repo=acme/shop&branch=main") == [second]
    assert ids("limit=1") == [third]
    assert ids("repo=docs") == ids("branch=dev") == ids("state=nonsense") == ids("stalled=true") == []
    assert client.get("/jobs?limit=0").status_code == client.get("/jobs?stalled=maybe").status_code == 422
    counts = client.get("/status").json()["jobs"]
    assert counts["counts"] == {"queued": 2, "running": 0, "succeeded": 1, "failed": 0, "aborted": 1}
    assert counts["total"] == 4


def test_abort_reaches_queued_and_running_jobs(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    running, queued = (send(client).json()["job_id"] for _ in range(2))
    served.registry.pick("inbox", owner="a test")
    for job_id, state in ((queued, "queued"), (running, "running")):
        answer = client.post(f"/jobs/{job_id}/abort").json()
        assert (answer["job_id"], answer["previous_state"]) == (job_id, state)
        assert served.registry.get(job_id).status is Status.CANCELLED
        assert client.post(f"/jobs/{job_id}/abort").status_code == 409
    assert client.post(f"/jobs/{'0' * 32}/abort").status_code == 404


def test_jobs_of_other_kinds_are_not_there(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    other = served.registry.register(prompt="x", agent="codex").job.job_id
    for path in (f"/jobs/{other}", f"/jobs/{other}/log", f"/jobs/{other}/log/stream"):
        assert client.get(path).status_code == 404
    assert client.post(f"/jobs/{other}/abort").status_code == 404
    assert served.registry.get(other).status is Status.PENDING


def test_wrong_paths_and_methods_answer_as_there(both: tuple[Serving, httpx.Client]) -> None:
    _served, client = both
    assert client.get("/nothing").status_code == 404
    assert client.delete("/jobs").status_code == 405
    redirected = client.get("/targets/")
    assert redirected.status_code == 307
    assert redirected.headers["location"].endswith("/targets")


def test_each_scope_reaches_what_it_should(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    job = send(client).json()["job_id"]

    def codes(*scopes: str, auth: str = "basic") -> list[int]:
        token = served.token(*scopes) if scopes else "mam_wrong"
        headers = {"authorization": f"Bearer {token}"} if auth == "bearer" else {}
        basic = ("anybody", token) if auth == "basic" else None
        with httpx.Client(base_url=f"{served.valet_url}/api/v1", headers=headers, auth=basic, trust_env=False) as one:
            return [
                one.get("/healthz").status_code, one.get("/jobs").status_code, one.get(f"/jobs/{job}").status_code,
                one.post(f"/jobs/{job}/abort").status_code,
            ]  # fmt: skip

    assert codes() == codes(auth="bearer") == codes(auth="none") == [200, 401, 401, 401]
    assert codes("answer") == [200, 403, 403, 403]
    assert codes("read") == codes("read", auth="bearer") == [200, 200, 200, 403]
    assert codes("submit") == [200, 200, 404, 404]  # of another token
    with httpx.Client(base_url=f"{served.valet_url}/api/v1", trust_env=False) as nobody:
        assert nobody.get("/jobs").headers["www-authenticate"].startswith("Basic ")


def test_pages_of_other_sites_reach_nothing(both: tuple[Serving, httpx.Client]) -> None:
    served, client = both
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/jobs", json={}, headers=headers).status_code == 403
    assert client.get("/jobs", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/jobs", headers={"host": httpx.URL(served.url).netloc.decode()}).status_code == 421
    with httpx.Client(base_url=f"{served.url}/api/v1", auth=client.auth, trust_env=False) as main:
        assert main.get("/targets").status_code == 404  # and the server's own routes are not here
    assert client.get("/openapi.json").status_code == 404


def test_targets_are_the_directories_of_the_inbox(tmp_path: Path) -> None:
    for folder in ("acme/shop/main", "acme/shop/feature%2Flogin", "acme/.hidden/main", "b@d/x/main"):
        (tmp_path / "inbox" / folder).mkdir(parents=True)
    with valet(Registry(MemoryStore(SystemClock())), root=str(tmp_path)) as (_served, client):
        found = {(one["full_repo"], one["branch"]): one["inbox_path"] for one in client.get("/targets").json()}
        assert set(found) == {
            ("acme/shop", "feature/login"), ("acme/shop", "main"), ("acme/docs", "main"), ("other/docs", "main"),
        }  # fmt: skip
        assert found["acme/shop", "main"] == str(tmp_path / "inbox/acme/shop/main")
        assert client.get("/status").json()["roots"]["tree_builder_root_exists"] is True

        (tmp_path / "inbox/acme/shop/main/.pv_inbox").touch()
        names = [(one["full_repo"], one["branch"]) for one in client.get("/targets").json()]
        assert ("acme/shop", "feature/login") not in names
        assert ("acme/shop", "main") in names
        assert send(client).json()["inbox_path"].startswith(str(tmp_path / "inbox/acme/shop/main/"))


# -- the log -------------------------------------------------------------------------------------------------------


def test_the_log_is_live_and_can_be_continued(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.db")
    create_sqlite_store(path)
    with valet(Registry(SqliteStore(path))) as (served, client):
        job_id = send(client).json()["job_id"]
        assert client.get(f"/jobs/{job_id}/log").status_code == 404
        served.registry.pick("inbox", owner="a test")
        with open(log_of(served, job_id), "wb") as output, client.stream("GET", f"/jobs/{job_id}/log/stream") as stream:
            lines = stream.iter_lines()
            output.write(b"first\nhalf")
            output.flush()
            assert [next(lines), next(lines), next(lines)] == ["id: 6", "data: first", ""]
            output.write(b" line\r\n\xff rest")
            output.flush()
            assert [next(lines), next(lines), next(lines)] == ["id: 17", "data: half line", ""]
            served.registry.complete(job_id)
            assert [line for line in lines if line] == ["id: 23", "data: \ufffd rest"]

        assert client.get(f"/jobs/{job_id}/log").text == "first\nhalf line\r\n\ufffd rest"
        assert client.get(f"/jobs/{job_id}/log?lines=1").text == "\ufffd rest"
        assert client.get(f"/jobs/{job_id}/log?lines=0").status_code == 422
        rest = client.get(f"/jobs/{job_id}/log/stream", headers={"last-event-id": "6"}).text
        assert rest == "id: 17\ndata: half line\n\nid: 23\ndata: \ufffd rest\n\n"
        assert client.get(f"/jobs/{job_id}/log/stream", headers={"last-event-id": "x"}).status_code == 422

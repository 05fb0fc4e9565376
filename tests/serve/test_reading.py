"""Reading jobs over the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.serve.serving import Serving


def test_health_needs_no_login(served: Serving) -> None:
    assert served.client().get("/health").json()["status"] == "ok"
    assert served.client().get("/ready").json() == {"status": "ok"}


def test_a_job_is_read_with_a_token(served: Serving) -> None:
    job = served.registry.register(prompt="fix it", agent="codex").job

    found = served.client("read").get(f"/jobs/{job.job_id}")

    assert found.status_code == 200
    assert found.json() == job.to_json()
    assert served.client("read").get(f"/jobs/{job.job_id[:8]}").headers["etag"] == found.headers["etag"]


@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer x", "Basic eDp4", "mam_x", "Bearer é", "Bearer " + "x" * 5000]
)
def test_without_a_valid_token_the_answer_is_401(served: Serving, header: str | None) -> None:
    headers = httpx.Headers() if header is None else httpx.Headers({b"authorization": header.encode()})
    answer = served.client().get("/jobs", headers=headers)

    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "xxxxxxxx" not in answer.text


def test_pages_follow_each_other_by_link_and_cursor(served: Serving) -> None:
    made = [served.registry.register(prompt=f"job {number}", agent="codex").job.job_id for number in range(5)]
    reader = served.client("read")

    first = reader.get("/jobs", params={"limit": 2, "label": "codex"})
    second = reader.get(first.links["next"]["url"].removeprefix("/api/v1"))
    third = reader.get("/jobs", params={"limit": 2, "cursor": second.json()["next"]})

    listed = [job["job_id"] for page in (first, second, third) for job in page.json()["jobs"]]
    assert listed == made[::-1]
    assert third.json()["next"] is None


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("stauts=open", "is not a parameter"), ("status=banana", "must be one of pending,"), ("limit=0", "between"),
        ("limit=x", "whole number"), ("limit=1&limit=2", "twice"), ("cursor=zzz", "match"),
        ("unseen=maybe", "true or false"),
        ("unseen=true&archived=true", "unseen"), ("since=yesterday", "since"), ("label=%00", "match"),
    ],
)  # fmt: skip
def test_a_wrong_filter_is_named(served: Serving, query: str, why: str) -> None:
    answer = served.client("read").get(f"/jobs?{query}")

    assert (answer.status_code, answer.json()["exit_code"]) == (422, 2)
    assert why in answer.json()["detail"]

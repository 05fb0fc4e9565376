"""What the API does as HTTP: keys, revisions, fences, limits, methods, compression."""

from __future__ import annotations

import gzip
import json
import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from mam.jobs.pause import Pause
from mam.serve.settings import BODY_LIMIT, HEADER_LIMIT
from tests.serve.flows import LABEL, World

if TYPE_CHECKING:
    from typing import Any

    from tests.serve.serving import Serving

NEW = {"prompt": "fix it", "agent": LABEL}


# -- keys ------------------------------------------------------------------------------------------------------------


def test_a_repeated_request_with_a_key_returns_the_first_job(served: Serving) -> None:
    world = World(served)
    first = world.post("/jobs", NEW, idempotency_key="k1")
    again = world.post("/jobs", NEW, idempotency_key="k1")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job_id"] == again.json()["job_id"]
    assert first.json()["key"] == "k1"
    assert first.headers["location"] == f"/api/v1/jobs/{first.json()['job_id']}"
    assert len(list(served.registry.store.entries(None))) == 1


@pytest.mark.parametrize(
    "change", [{"prompt": "other"}, {"agent": "human"}, {"label": "x"}, {"priority": 1}, {"artifacts": ["a"]},
               {"permissions": "ask"}, {"workdir": "/tmp"}, {"repo": "o/r"}, {"ask": False}], ids=str,
)  # fmt: skip
def test_the_same_key_with_another_body_is_422(served: Serving, change: dict[str, Any]) -> None:
    world = World(served)
    first = world.post("/jobs", NEW, idempotency_key="k1").json()

    answer = world.post("/jobs", {**NEW, **change}, idempotency_key="k1")

    assert (answer.status_code, answer.json()["job"]) == (422, first["job_id"])
    assert len(list(served.registry.store.entries(None))) == 1


def test_a_continuation_with_a_key_is_registered_once(served: Serving) -> None:
    world = World(served)
    job = world.pending().job_id
    path = f"/jobs/{job}/continue"
    first = world.post(path, {"prompt": "more"}, idempotency_key="k2")
    again = world.post(path, {"prompt": "more"}, idempotency_key="k2")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job_id"] == again.json()["job_id"]
    assert world.post(path, {"prompt": "else"}, idempotency_key="k2").status_code == 422


# -- revisions -------------------------------------------------------------------------------------------------------


def test_a_change_with_an_old_revision_is_412_and_writes_nothing(served: Serving) -> None:
    world = World(served)
    job = world.pending().job_id
    old = world.get(f"/jobs/{job}").headers["etag"]
    new = world.client.patch(f"/jobs/{job}", json={"priority": 2}, headers={"if-match": old})
    assert new.status_code == 200
    assert new.headers["etag"] != old

    for answer in (
        world.client.patch(f"/jobs/{job}", json={"priority": 5}, headers={"if-match": old}),
        world.post(f"/jobs/{job}/cancel", if_match=old),
    ):
        assert (answer.status_code, answer.json()["exit_code"], answer.json()["job"]) == (412, 1, job)
    assert served.registry.get(job).priority == 2
    assert world.post(f"/jobs/{job}/cancel", if_match=f'"other", {new.headers["etag"]}').status_code == 200


def test_an_unchanged_job_is_not_sent_again(served: Serving) -> None:
    world = World(served)
    job = world.pending().job_id
    tag = world.get(f"/jobs/{job}").headers["etag"]

    answer = world.client.get(f"/jobs/{job}", headers={"if-none-match": f'W/"x", {tag}'})

    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)


# -- fences ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"mam_attempt": "1"}, {"mam_claim": "x"}], ids=str)
def test_a_report_without_its_fence_is_428(served: Serving, headers: dict[str, str]) -> None:
    world = World(served)
    job = world.running()

    answer = world.post(f"/claims/{job.job_id}/complete", {"result": "x"}, **headers)

    assert answer.status_code == 428
    assert served.registry.get(job.job_id).status == "running"


@pytest.mark.parametrize("what", ["heartbeat", "complete", "fail", "release", "events", "questions"])
def test_a_report_of_a_lost_claim_is_412(served: Serving, what: str) -> None:
    world = World(served)
    job = world.running()
    body = {"fail": {"reason": "r"}, "events": {"event": "progress"}, "questions": {"kind": "question", "text": "?"}}

    answer = world.post(f"/claims/{job.job_id}/{what}", body.get(what), mam_attempt="2", mam_claim=str(job.claim_id))

    assert (answer.status_code, answer.json()["exit_code"]) == (412, 4)
    assert answer.json()["job"] == job.job_id
    assert served.registry.get(job.job_id) == job


def test_a_claim_tells_its_fence_and_no_other_answer_does(served: Serving) -> None:
    world = World(served)
    job = world.pending().job_id

    picked = world.post("/claims", {"label": LABEL, "host": "laptop", "owner": "me@laptop"})

    fence = {"mam_attempt": picked.headers["mam-attempt"], "mam_claim": picked.headers["mam-claim"]}
    assert picked.json()["owner"] == "me@laptop"
    assert fence["mam_claim"] == picked.json()["claim_id"]
    assert fence["mam_claim"] not in world.get(f"/jobs/{job}").text
    assert fence["mam_claim"] not in world.get("/jobs").text
    assert world.post(f"/claims/{job}/complete", {"result": "done"}, **fence).json()["status"] == "completed"
    assert world.post(f"/claims/{job}/complete", {"result": "done"}, **fence).status_code == 200, "a repeat"


def test_nothing_to_pick_is_204_and_a_paused_label_423(served: Serving) -> None:
    world = World(served)
    assert world.post("/claims", {"label": "empty"}).status_code == 204

    served.registry.pause(Pause(label="empty"))
    answer = world.post("/claims", {"label": "empty"})
    assert (answer.status_code, answer.json()["exit_code"]) == (423, 3)


# -- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422), (b"{", 400), (b"[]", 422), (b'"x"', 422), (b"null", 422), (b'{"prompt": "x", "prompt": "y"}', 400),
        (b'{"prompt": NaN}', 400), (b"[" * 5000, 400), (b"\xff\xfe", 400), (b'{"prompt": "x", "agnet": "y"}', 422),
        (b'{"prompt": "x", "agent": "codex", "job_id": "x"}', 422), (b'{"prompt": 1, "agent": "codex"}', 422),
        (b'{"prompt": "\\ud800", "agent": "codex"}', 422), (b'{"prompt": "a\\u0000b", "agent": "codex"}', 422),
        (b'{"prompt": "x", "agent": "co\\ndex"}', 422), (b'{"prompt": "x", "agent": "codex", "workdir": "here"}', 422),
        (b'{"prompt": "x", "agent": "codex", "validation": {"script": "/bin/sh"}}', 422),
        (b'{"prompt": "x", "agent": "codex", "priority": 1.5}', 422),
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_body_is_refused_in_one_line_and_changes_nothing(served: Serving, body: bytes, status: int) -> None:
    client = served.client("admin")
    answer = client.post("/jobs", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == status, answer.text
    assert "\n" not in answer.json()["detail"]
    assert served.registry.store.end_offset() == "0"


def test_only_json_is_taken(served: Serving) -> None:
    client = served.client("admin")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.post("/jobs", content=json.dumps(NEW), headers={"content-type": kind})
        assert answer.status_code == 415


def test_a_prompt_of_eight_mebibytes_is_taken_and_a_larger_one_is_not(served: Serving) -> None:
    world = World(served)
    limit = 8 << 20
    assert world.post("/jobs", {**NEW, "prompt": "x" * limit}).status_code == 201
    assert world.post("/jobs", {**NEW, "prompt": "x" * (limit + 1)}).status_code == 422
    assert world.post("/jobs", {**NEW, "prompt": "é" * (limit // 2 + 1)}).status_code == 422


def test_a_body_that_is_too_large_is_not_read(served: Serving) -> None:
    with socket.create_connection(("127.0.0.1", served.server.settings.port)) as connection:
        head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost:{served.server.settings.port}\r\n"
        connection.sendall(f"{head}Content-Length: {BODY_LIMIT + 1}\r\n\r\n".encode())
        assert b"413" in connection.recv(1000)


def test_a_body_without_a_length_is_limited_too(served: Serving) -> None:
    def pieces() -> Any:
        for _ in range(BODY_LIMIT // (1 << 20) + 2):
            yield b"x" * (1 << 20)

    client = served.client("admin")
    try:
        answer = client.post("/jobs", content=pieces(), headers={"content-type": "application/json"})
    except httpx.WriteError:
        return  # the server closed the connection while the client sent
    assert answer.status_code == 413


def test_headers_that_are_too_large_end_the_connection(served: Serving) -> None:
    with socket.create_connection(("127.0.0.1", served.server.settings.port)) as connection:
        try:
            connection.sendall(
                b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"x" * (4 * HEADER_LIMIT)
            )
            connection.sendall(b"\r\n\r\n")
        except OSError:
            pass
        try:
            assert b" 200 " not in connection.recv(1000)
        except ConnectionError:
            pass
    assert served.client().get("/health").status_code == 200


# -- methods and forms -----------------------------------------------------------------------------------------------


def test_a_wrong_method_is_answered_with_those_that_there_are(served: Serving) -> None:
    client = served.client("admin")
    answer = client.put("/jobs")
    assert answer.status_code == 405
    assert {word.strip() for word in answer.headers["allow"].split(",")} == {"GET", "HEAD", "POST"}
    assert client.delete("/health").status_code == 405


def test_head_answers_as_get_without_a_body(served: Serving) -> None:
    world = World(served)
    path = f"/jobs/{world.pending().job_id}"
    head, get = world.client.head(path), world.client.get(path)

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == get.headers["etag"]


def test_a_large_answer_is_compressed_if_the_caller_takes_that(served: Serving) -> None:
    client = served.client()
    packed = client.get("/openapi.json", headers={"accept-encoding": "gzip"})
    plain = client.get("/openapi.json", headers={"accept-encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json()
    assert len(gzip.compress(plain.content)) * 2 < len(plain.content)


@pytest.mark.parametrize(
    ("accept", "status"),
    [("application/json", 200), ("*/*", 200), ("application/*;q=0.1", 200), ("text/html, */*;q=0.1", 200),
     ("text/html", 406), ("application/json;q=0", 406), ("image/png", 406)],
)  # fmt: skip
def test_a_caller_that_takes_no_json_gets_406(served: Serving, accept: str, status: int) -> None:
    assert served.client("read").get("/jobs", headers={"accept": accept}).status_code == status


def test_an_unknown_path_is_a_problem(served: Serving) -> None:
    for path in ("/nope", "/jobs/x/nope", "//jobs", "/jobs/%2e%2e/me"):
        answer = served.client("admin").get(path)
        assert answer.status_code in (404, 200, 422)
        if answer.status_code == 404:
            assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("job", ["..", "%00", "a" * 65, "-x", "a.b", "a%2Fb", "٣"])
def test_a_path_that_names_no_job_is_refused(served: Serving, job: str) -> None:
    answer = served.client("admin").get(f"/jobs/{job}")
    assert answer.status_code in (404, 422)


def test_a_bug_is_answered_without_its_text(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(served.registry, "overview", broken)
    job = World(served).pending().job_id

    answer = served.client("read").get(f"/jobs/{job}/show")

    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "secret" not in answer.text

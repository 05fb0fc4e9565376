"""Requests that wait: claims, ends of jobs, and output that grows."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mam.jobs.pause import Pause
from mam.stores.outputs import AttemptId, OutputLimits, Piece
from tests.serve.flows import LABEL, World

if TYPE_CHECKING:
    from tests.serve.serving import Serving


def test_a_claim_waits_for_its_job_without_a_thread(served: Serving) -> None:
    clients = [served.client("work", name="worker") for _ in range(40)]  # more than the server has threads
    with ThreadPoolExecutor(40) as pool:
        picked = [pool.submit(client.post, "/claims", json={"label": LABEL, "wait": 60}) for client in clients]
        jobs = {World(served).pending().job_id for _ in range(40)}
        answers = [one.result() for one in picked]

    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["job_id"] for answer in answers} == jobs


def test_a_lifted_pause_wakes_a_claim(served: Serving) -> None:
    served.registry.pause(Pause(label=LABEL))
    job = World(served).pending()
    client = served.client("work")
    with ThreadPoolExecutor(1) as pool:
        picked = pool.submit(client.post, "/claims", json={"label": LABEL, "wait": 60})
        served.registry.resume(None, LABEL)
        assert picked.result().json()["job_id"] == job.job_id


def test_a_caller_that_is_gone_gets_no_job(served: Serving) -> None:
    port, token = served.server.settings.port, served.token("work")
    body = json.dumps({"label": LABEL, "wait": 60}).encode()
    with socket.create_connection(("127.0.0.1", port)) as caller:
        head = f"POST /api/v1/claims HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n"
        caller.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    job = World(served).pending()

    taken = served.client("work", name="other").post("/claims", json={"label": LABEL, "wait": 60})

    assert taken.json()["job_id"] == job.job_id
    assert served.registry.get(job.job_id).owner == "other"


def test_a_wait_answers_when_the_job_has_ended(served: Serving) -> None:
    job = World(served).running()
    client = served.client("read")
    with ThreadPoolExecutor(1) as pool:
        waited = pool.submit(client.get, f"/jobs/{job.job_id}/wait", params={"timeout": 60})
        served.registry.complete(job.job_id, attempt=job.attempt, claim_id=job.claim_id, result="done")
        assert waited.result().json()["status"] == "completed"
    pending = World(served).pending().job_id
    assert client.get(f"/jobs/{pending}/wait", params={"timeout": 0}).json()["status"] == "pending"


def test_output_is_followed_by_its_bytes(served: Serving) -> None:
    job = World(served).running()
    outputs = served.registry.store.outputs
    attempt = AttemptId(job_id=job.job_id, attempt=job.attempt, claim_id=job.claim_id)
    words = "häuser\n".encode()
    outputs.append(attempt, Piece(start=0, data=words[:2]), OutputLimits())  # half of a letter
    texts, positions = list[str](), list[int]()
    client = served.client("read")
    with client.stream("GET", f"/jobs/{job.job_id}/output", params={"follow": "true"}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found = json.loads(line.removeprefix("data: "))
                texts.append(found.get("text", ""))
                positions.append(found["end"])
                if found["end"] == 2 and len(positions) == 1:
                    outputs.append(attempt, Piece(start=2, data=words[2:]), OutputLimits())
                elif found["end"] == len(words) and served.registry.get(job.job_id).status == "running":
                    served.registry.complete(job.job_id, attempt=job.attempt, claim_id=job.claim_id)
    assert "".join(texts) == "häuser\n"
    assert positions == [2, len(words), len(words)]

    rest = client.get(f"/jobs/{job.job_id}/output", params={"since": 3})
    assert (rest.content, rest.headers["mam-end"]) == (words[3:], str(len(words)))

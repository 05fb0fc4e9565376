"""Live events: positions, filters, many readers, slow readers, a killed server."""

from __future__ import annotations

import asyncio
import json
import socket
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mam.serve import hub, sse
from tests.serve.flows import LABEL, World
from tests.serve.process import server_process
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.cli.command import Mam
    from tests.serve.serving import Serving

FOLLOWERS = 500


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


def everything(served: Serving, **params: str) -> list[dict[str, Any]]:
    answer = served.client("read", name="reader").get("/events", params={"follow": "false", "after": "start", **params})
    assert answer.status_code == 200
    return entries(answer.text)


def test_a_stream_holds_each_entry_of_the_journal_in_order(served: Serving) -> None:
    world = World(served)
    jobs = [world.ended().job_id, world.completed().job_id]

    found = everything(served)

    stored = list(served.registry.store.entries(None))
    assert [one["job_id"] for one in found] == [entry.job_id for entry in stored]
    assert {one["job_id"] for one in found} == set(jobs)
    assert [one["status"] for one in found if one["status"]][-1] == "completed"
    assert any(event["event"] == "completed" for one in found for event in one["events"])


def test_a_reader_goes_on_after_any_position(served: Serving) -> None:
    World(served).completed()
    found = everything(served)
    for at, entry in enumerate(found):
        assert everything(served, after=entry["position"]) == found[at + 1 :]


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({"label": "runs"}, "runs"),
        ({"agent": LABEL}, None),
        ({"status": "completed"}, None),
        ({"event": "completed"}, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_leaves_out_the_rest(served: Serving, params: dict[str, str], wanted: str | None) -> None:
    world = World(served)
    world.pending()
    world.completed()

    found = everything(served, **params)

    assert found
    assert wanted is None or {one["label"] for one in found} == {wanted}
    assert "status" not in params or {one["status"] for one in found} == {"completed"}
    assert "event" not in params or all(one["events"] for one in found)


@pytest.mark.parametrize("position", ["x", "-1", "a-b", "start ", "x-99999999999999999999"])
def test_what_is_no_position_is_refused(served: Serving, position: str) -> None:
    assert served.client("read").get("/events", params={"after": position}).status_code == 422


def test_another_journal_is_announced_and_read_from_its_beginning(served: Serving) -> None:
    World(served).pending()
    answer = served.client("read").get("/events", params={"follow": "false", "after": "another-7"})
    assert "event: reset" in answer.text
    assert len(entries(answer.text)) == 2


def test_a_reader_that_is_far_behind_reads_the_journal(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BLOCK", 3)
    world = World(served)
    for _ in range(5):
        world.completed()

    positions = [one["position"] for one in everything(served)]

    assert len(positions) == len(list(served.registry.store.entries(None)))
    assert len(set(positions)) == len(positions)
    for at in range(len(positions)):
        assert [one["position"] for one in everything(served, after=positions[at])] == positions[at + 1 :]


def test_readers_that_are_behind_together_share_what_is_read(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BLOCK", 3)
    world = World(served)
    for _ in range(5):
        world.completed()
    asked = list[str | None]()
    read = served.registry.store.entries

    def counted(offset: str | None) -> Any:
        asked.append(offset)
        return read(offset)

    monkeypatch.setattr(served.registry.store, "entries", counted)
    everything(served)
    first = set(asked)
    asked.clear()
    everything(served)
    assert len(asked) < len(first) / 2, "only the last block, which is not full, is read again"


def test_a_stream_ends_with_its_token(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.05)
    client = served.client("read", name="phone")
    with client.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": mam"
        assert any(line.startswith(": keep-alive") for line in lines)
        served.registry.store.drop_credential("token", "phone")
        list(lines)


def test_a_reader_that_takes_nothing_is_dropped_and_others_go_on(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = Event()

    class NotedReader(sse.SlowReader):
        def __init__(self) -> None:
            super().__init__()
            dropped.set()

    monkeypatch.setattr(sse, "SlowReader", NotedReader)
    monkeypatch.setattr(sse, "SLOW_SECONDS", 0.2)
    world = World(served)
    port, token = served.server.settings.port, served.token("read", name="slow")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", port))
        head = f"GET /api/v1/events?after=start HTTP/1.1\r\nHost: localhost:{port}\r\n"
        slow.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        job = world.running()
        for number in range(400):
            served.registry.publish(
                job.job_id,
                event="progress",
                detail=f"{number}" + "x" * 9000,
                attempt=job.attempt,
                claim_id=job.claim_id,
            )
        assert dropped.wait(60)
        slow.settimeout(60)
        received = 0
        while data := slow.recv(1 << 16):  # what the kernel had accepted, then the end
            received += len(data)
        assert received < 400 * 9000
    assert len(everything(served)) == 402


@pytest.mark.slow
def test_five_hundred_followers_miss_nothing_when_the_server_is_killed_under_load(mam: Mam) -> None:
    """Each reconnects after the last entry that it got, until it has the last job. A writer goes on meanwhile."""
    token = mam("token", "create", "t", "--scope", "read").line
    first = mam("register", "first", "--agent", "codex").line
    got: list[list[str]] = [[] for _ in range(FOLLOWERS)]
    last, address, over = [""], [""], Event()
    writer = Thread(
        target=lambda: last.__setitem__(0, [mam("register", "x", "--agent", "codex").line for _ in range(6)][-1])
    )

    def follow_all() -> None:
        asyncio.run(_follow_all(address, token, got, last, over))

    with server_process(mam) as server:
        address[0] = server.url
        followers = Thread(target=follow_all)
        followers.start()
        await_that(lambda: sum(bool(one) for one in got) > FOLLOWERS // 2, "the followers are not connected")
        writer.start()
        server.process.kill()
        server.process.wait(60)
    with server_process(mam) as server:
        address[0] = server.url
        writer.join(120)
        await_that(lambda: all(last[0] in one for one in got), "an entry is lost", 200)
        over.set()
    followers.join(60)
    for one in got:
        assert one[0] == first
        assert len(one) == len(set(one)) == 7, "one entry for each job"


async def _follow_all(address: list[str], token: str, got: list[list[str]], last: list[str], over: Event) -> None:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(_follow(client, address, token, one, last, over) for one in got))


async def _follow(
    client: httpx.AsyncClient, address: list[str], token: str, got: list[str], last: list[str], over: Event
) -> None:
    position = "start"
    while not over.is_set():
        headers = {"authorization": f"Bearer {token}", "last-event-id": position}
        try:
            async with client.stream("GET", f"{address[0]}/api/v1/events", headers=headers) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data: "):
                        entry = json.loads(line.removeprefix("data: "))
                        position = entry["position"]
                        got.append(entry["job_id"])
                    if last[0] and last[0] in got:
                        return
        except httpx.HTTPError:
            await asyncio.sleep(0.2)  # as a browser does before it connects again

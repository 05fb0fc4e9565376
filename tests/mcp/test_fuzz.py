"""Hostile input: whatever comes in, every answer is a JSON-RPC message, and the server goes on."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam.mcp.line_reader import LineReader
from mam.mcp.messages import MESSAGE_LIMIT, RpcError, encode, id_of, read_message
from tests.cli.command import Mam
from tests.mcp.client import META, NEWEST, TASKS, McpClient, mcp

META_FIELDS = {f"{META}protocolVersion": NEWEST, f"{META}clientCapabilities": {}}
MALFORMED = [
    (b"nonsense", -32700), (b"\xff\xfe{}", -32700), (b"[" * 100_000, -32700), (b'{"jsonrpc": "2.0"', -32700),
    (b"[]", -32600), (b"7", -32600), (b"null", -32600), (b"{}", -32600), (b'{"jsonrpc": "1.0", "id": 1}', -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":[],"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', -32700),
    (b'{"jsonrpc":"2.0","id":99999999999999999999999,"method":"x"}', -32600),
]  # fmt: skip


@pytest.mark.parametrize(("data", "code"), MALFORMED)
def test_a_malformed_message_is_refused(data: bytes, code: int) -> None:
    with pytest.raises(RpcError) as refused:
        read_message(data)
    assert refused.value.code == code


def test_the_server_goes_on_after_each_of_them(mam: Mam) -> None:
    with mcp(mam) as client:
        for data, code in MALFORMED:
            client.write(data + b"\n")
            assert client.read()["error"]["code"] == code
        client.write(b"\n  \r\n")
        client.write(b'{"jsonrpc":"2.0","id":5,"result":{}}\n{"jsonrpc":"2.0","method":"notifications/what"}\n')
        assert client.ask("server/discover")
        assert client.end() == ""


def test_an_oversized_line_is_refused_and_the_next_one_is_read(mam: Mam) -> None:
    with mcp(mam) as client:
        client.write(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (MESSAGE_LIMIT + 1) + b'"}\n')
        error = client.read()
        assert (error["id"], error["error"]["code"]) == (None, -32600)
        assert client.ask("server/discover")


def test_the_longest_prompt_passes_and_a_longer_one_is_refused(mam: Mam) -> None:
    with mcp(mam) as client:
        job = client.call("submit", prompt="ä" * (4 << 20), agent="codex", detach=True)["job_id"]
        assert "at most 8,388,608 are taken" in client.fails("submit", prompt="x" * ((8 << 20) + 1), agent="codex")

    assert len(mam("get", job, "--json").json["prompt"]) == 4 << 20


def test_requests_may_come_in_pieces_and_several_at_once(mam: Mam) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": "a", "method": "server/discover", "params": {"_meta": META_FIELDS}})
    with mcp(mam) as client:
        for letter in line.encode():
            client.write(bytes([letter]))
        client.write(b"\n" + line.replace('"a"', '"b"').encode() + b"\n" + line.replace('"a"', '"c"').encode() + b"\n")
        assert [client.read()["id"] for _ in range(3)] == ["a", "b", "c"]


def test_a_reader_that_goes_away_ends_the_server(mam: Mam) -> None:
    with mcp(mam) as client:
        assert client.process.stdout is not None
        client.process.stdout.close()
        client.request("server/discover")
        assert client.process.wait(60) == 0
        assert client.process.stderr is not None
        assert client.process.stderr.read() == b""


def test_too_many_waits_are_refused(mam: Mam) -> None:
    with mcp(mam) as client:
        job = client.call("submit", prompt="p", agent="codex")["job_id"]
        numbers = [client.request("tools/call", {"name": "wait", "arguments": {"ids": [job]}}) for _ in range(65)]
        assert "64 requests are open" in client.answer_to(numbers[-1])["error"]["message"]
        client.send({"jsonrpc": "2.0", "id": numbers[0], "method": "server/discover", "params": {"_meta": META_FIELDS}})
        assert "this id is still open" in client.answer_to(numbers[0])["error"]["message"]
        mam("complete", job)
        assert all("result" in client.answer_to(number) for number in numbers[:64])


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
_METHODS = st.sampled_from(
    ["initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/read", "resources/subscribe",
     "prompts/get", "tasks/get", "tasks/update", "tasks/cancel", "subscriptions/listen", "logging/setLevel", "x"]
)  # fmt: skip
_NAMES = st.sampled_from(["submit", "wait", "show", "list", "result", "cancel", "ask", "claim", "report", "x"])
_ARGUMENTS = st.dictionaries(
    st.sampled_from(["ids", "job", "cursor", "seconds", "fields", "status", "limit", "handle", "event", "offset", "x"]),
    _JSON,
    max_size=4,
)
_PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": _NAMES | _JSON, "arguments": _ARGUMENTS | _JSON, "uri": _JSON, "taskId": _JSON, "notifications": _JSON,
        "inputResponses": _JSON, "protocolVersion": _JSON, "capabilities": _JSON,
        "_meta": st.just(META_FIELDS) | st.just({**META_FIELDS, f"{META}clientCapabilities": TASKS}) | _JSON,
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("fuzz")
    here, home = root / "project", root / "home"
    here.mkdir()
    home.mkdir()
    mam = Mam(here, home)
    mam("register", "p", "--agent", "codex")
    with mcp(mam, "--worker") as client:
        yield client
        assert client.end() == ""


@settings(max_examples=300)
@given(method=_METHODS, params=_PARAMS | _JSON)
def test_every_request_gets_one_answer(fuzzed: McpClient, method: str, params: Any) -> None:
    number = os.urandom(8).hex()
    if method == "tools/call" and isinstance(params, dict) and isinstance(params.get("arguments"), dict):
        params["arguments"].setdefault("seconds", 0)
    fuzzed.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    message = fuzzed.read()
    if message.get("method") == "notifications/subscriptions/acknowledged":
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
        fuzzed.send(cancel)
        return
    assert message["id"] == number
    assert ("result" in message) != ("error" in message)
    assert "this is a bug" not in json.dumps(message)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_bytes_are_a_message_or_are_refused(data: bytes) -> None:
    id_of(data)
    with suppress(RpcError):
        read_message(data)


@given(st.lists(st.binary(max_size=40)), st.integers(1, 7))
def test_lines_come_out_as_they_were_sent(lines: list[bytes], size: int) -> None:
    sent = [line.replace(b"\n", b"") for line in lines]
    data = b"".join(line + b"\n" for line in sent)
    reader = LineReader()
    found = [line for at in range(0, len(data), size) for line in reader.feed(data[at : at + size])]

    assert found == [line for line in sent if line]


def test_half_a_surrogate_pair_stays_escaped() -> None:
    assert encode({"text": "\ud800"}) == b'{"text":"\\ud800"}\n'

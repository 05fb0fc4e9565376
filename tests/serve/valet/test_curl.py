"""The routes of prompt-valet, typed with the real curl as its users do, and what they answer.

test_clients.py looks closer at each. The token is the one of docs/how-to/prompt-valet.md: it reads, and sends prompts
for one agent.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from string import Template
from typing import TYPE_CHECKING

import httpx
import pytest

from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.serve.valet.listener import log_of, send, valet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.serve.serving import Serving

QUIET = ["--silent", "--show-error", "--noproxy", "*", "--max-time", "60"]
JSON, PROBLEM = "application/json", "application/problem+json"
TEXT, EVENTS = "text/plain; charset=utf-8", "text/event-stream; charset=utf-8"


class Terminal:
    """Types lines in which $API, $TOKEN and the ids of jobs stand for what they are."""

    def __init__(self, served: Serving, directory: Path) -> None:
        self.served, self.directory = served, directory
        self.names = {
            "API": f"{served.valet_url}/api/v1",
            "TOKEN": served.token("read", "submit", agents=("codex",)),
            "READER": served.token("read"),
            "ADMIN": served.token("admin"),
        }

    def fill(self, text: str) -> str:
        return Template(text).substitute(self.names)

    def words(self, line: str) -> list[str]:
        curl, *rest = shlex.split(self.fill(line))
        return [curl, *QUIET, *rest]

    def type(self, line: str) -> tuple[int, str, str]:
        """The status, the content type and the answer."""
        ending = ["--write-out", "\n%{http_code} %{content_type}"]
        ran = subprocess.run(
            [*self.words(line), *ending], cwd=self.directory, capture_output=True, text=True, check=True
        )
        answer, _, facts = ran.stdout.rpartition("\n")
        status, _, kind = facts.partition(" ")
        return int(status), kind, answer


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """With a job in each state, which the user of the token has sent."""
    directory = tmp_path_factory.mktemp("curl")
    for name, content in (("a.md", b"first"), ("b.md", b"second"), ("notes.txt", b"x"), ("latin.md", b"\xff\xfe")):
        (directory / name).write_bytes(content)
    create_sqlite_store(str(directory / "jobs.db"))
    store = SqliteStore(str(directory / "jobs.db"))
    with valet(Registry(store)) as (served, _client):
        here = Terminal(served, directory)
        with httpx.Client(base_url=here.names["API"], auth=("mam", here.names["TOKEN"]), trust_env=False) as sender:
            for name in ("DONE", "FAILED", "RUNNING", "BUSY", "QUEUED", "WAITING"):
                here.names[name] = send(sender, f"prompt of {name}").json()["job_id"]
        for _ in ("DONE", "FAILED", "RUNNING", "BUSY"):
            served.registry.pick("inbox", owner="a test")
        with open(log_of(served, here.names["DONE"]), "wb") as log:
            log.write(b"one\ntwo\nthree\n")
        served.registry.complete(here.names["DONE"])
        served.registry.fail(here.names["FAILED"], reason="it broke")
        yield here
    store.close()


LINES = [
    # reading
    ("curl $API/healthz", 200, JSON, '{"status":"ok","version":'),
    ("curl -u mam:$TOKEN $API/status", 200, JSON, '"stall_threshold_seconds":60'),
    ("curl -u mam:$TOKEN $API/targets", 200, JSON, '"owner":"acme","full_repo":"acme/docs"'),
    ("curl -H 'Authorization: Bearer $TOKEN' $API/targets", 200, JSON, '"full_repo":"other/docs"'),
    ("curl -u mam:$TOKEN $API/jobs", 200, JSON, '{"jobs":[{"job_id":'),
    ("curl -u mam:$TOKEN '$API/jobs?state=SUCCEEDED&limit=5'", 200, JSON, '{"jobs":[{"job_id":"$DONE"'),
    ("curl -u mam:$TOKEN '$API/jobs?state=failed&repo=acme/shop'", 200, JSON, '{"jobs":[{"job_id":"$FAILED"'),
    ("curl -u mam:$TOKEN '$API/jobs?repo=docs&branch=main'", 200, JSON, '{"jobs":[]}'),
    ("curl -u mam:$TOKEN '$API/jobs?stalled=true'", 200, JSON, '{"jobs":[]}'),
    ("curl -u mam:$TOKEN -G $API/jobs -d state=running -d branch=main", 200, JSON, '"job_id":"$RUNNING"'),
    ("curl -u mam:$TOKEN $API/jobs/$QUEUED", 200, JSON, '"state":"queued"'),
    ("curl -u mam:$TOKEN $API/jobs/$DONE", 200, JSON, '"state":"succeeded"'),
    ("curl -u mam:$TOKEN $API/jobs/$DONE/log", 200, TEXT, "one\ntwo\nthree\n"),
    ("curl -u mam:$TOKEN '$API/jobs/$DONE/log?lines=2'", 200, TEXT, "two\nthree\n"),
    ("curl -N -u mam:$TOKEN $API/jobs/$DONE/log/stream", 200, EVENTS, "id: 4\ndata: one\n\nid: 8\ndata: two\n\n"),
    ("curl -u mam:$TOKEN -H 'Last-Event-ID: 8' $API/jobs/$DONE/log/stream", 200, EVENTS, "id: 14\ndata: three\n\n"),
    ("curl -L -u mam:$TOKEN $API/targets/", 200, JSON, '"full_repo":"acme/shop"'),
    ("curl -I -u mam:$TOKEN $API/targets", 200, JSON, "HTTP/1.1 200 OK"),
    # sending and aborting
    (
        "curl -u mam:$TOKEN $API/jobs -H 'Content-Type: application/json'"
        """ -d '{"repo":"shop","branch":"main","markdown_text":"tidy up","filename":"tidy.md"}'""",
        201, JSON, '"inbox_path":"acme/shop/main/tidy-',
    ),
    (
        """curl -u mam:$TOKEN $API/jobs -d '{"repo":"acme/docs","branch":"main","markdown_text":"tidy up"}'""",
        201, JSON, '"inbox_path":"acme/docs/main/',
    ),
    (
        "curl -u mam:$TOKEN $API/jobs/upload -F repo=shop -F branch=main -F files=@a.md -F files=@b.md",
        201, JSON, '{"jobs":[{"job_id":',
    ),
    ("curl -u mam:$TOKEN -X POST $API/jobs/$WAITING/abort", 200, JSON, '"previous_state":"queued"'),
    ("curl -u mam:$TOKEN -X POST $API/jobs/$BUSY/abort", 200, JSON, '"previous_state":"running"'),
    # what is refused
    ("curl $API/jobs", 401, JSON, '{"detail":"'),
    ("curl -u mam:wrong $API/jobs", 401, JSON, '{"detail":"'),
    ("curl -u mam:$READER -X POST $API/jobs/$RUNNING/abort", 403, JSON, '{"detail":"'),
    (
        """curl -u mam:$READER $API/jobs -d '{"repo":"shop","branch":"main","markdown_text":"x"}'""",
        403, JSON, '{"detail":"',
    ),
    ("curl -u mam:$TOKEN -H 'Origin: http://evil.example' $API/jobs -d '{}'", 403, PROBLEM, '"detail":"'),
    ("curl -u mam:$TOKEN -H 'Host: evil.example' $API/jobs", 421, PROBLEM, '"detail":"'),
    ("curl -u mam:$TOKEN $API/nothing", 404, JSON, '{"detail":"Not Found"}'),
    ("curl -u mam:$TOKEN -X DELETE $API/jobs/$DONE", 405, JSON, '{"detail":"Method Not Allowed"}'),
    ("curl -u mam:$TOKEN $API/jobs/nothing", 404, JSON, '{"detail":"Job not found"}'),
    ("curl -u mam:$TOKEN $API/jobs/nothing/log", 404, JSON, '{"detail":"Job not found"}'),
    ("curl -u mam:$TOKEN $API/jobs/nothing/log/stream", 404, JSON, '{"detail":"Job not found"}'),
    ("curl -u mam:$TOKEN -X POST $API/jobs/nothing/abort", 404, JSON, '{"detail":"Job not found"}'),
    ("curl -u mam:$TOKEN $API/jobs/$QUEUED/log", 404, JSON, '{"detail":"Log not found"}'),
    ("curl -u mam:$TOKEN -X POST $API/jobs/$DONE/abort", 409, JSON, '{"detail":"Job is succeeded;'),
    ("curl -u mam:$TOKEN '$API/jobs?limit=0'", 422, JSON, '{"detail":"limit '),
    ("curl -u mam:$TOKEN '$API/jobs?stalled=maybe'", 422, JSON, '{"detail":"stalled '),
    ("curl -u mam:$TOKEN '$API/jobs/$DONE/log?lines=0'", 422, JSON, '{"detail":"lines '),
    ("curl -u mam:$TOKEN $API/jobs -d 'not JSON'", 422, JSON, '{"detail":"The body '),
    ("curl -u mam:$TOKEN $API/jobs -d '{}'", 422, JSON, '{"detail":"repo is missing'),
    (
        """curl -u mam:$TOKEN $API/jobs -d '{"repo":"gone","branch":"main","markdown_text":"x"}'""",
        404, JSON, '{"detail":"',
    ),
    (
        """curl -u mam:$TOKEN $API/jobs -d '{"repo":"docs","branch":"main","markdown_text":"x"}'""",
        400, JSON, "ambiguous",
    ),
    (
        """curl -u mam:$TOKEN $API/jobs -d '{"repo":" ","branch":"main","markdown_text":"x"}'""",
        400, JSON, '{"detail":"repo and branch must not be blank."}',
    ),
    (
        "curl -u mam:$TOKEN $API/jobs"
        """ -d '{"repo":"shop","branch":"main","markdown_text":"x","filename":"../x.md"}'""",
        400, JSON, '{"detail":"filename ',
    ),
    ("curl -u mam:$TOKEN $API/jobs/upload -F repo=shop -F branch=main", 422, JSON, "one or more files"),
    (
        "curl -u mam:$TOKEN $API/jobs/upload -F repo=shop -F branch=main -F files=@notes.txt",
        400, JSON, '{"detail":"filename must end in .md."}',
    ),
    (
        "curl -u mam:$TOKEN $API/jobs/upload -F repo=shop -F branch=main -F files=@a.md -F files=@latin.md",
        400, JSON, "UTF-8",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "status", "kind", "answer"), LINES, ids=[line for line, *_ in LINES])
def test_a_line_of_curl_is_answered_as_prompt_valet_does(
    terminal: Terminal, line: str, status: int, kind: str, answer: str
) -> None:
    found_status, found_kind, found = terminal.type(line)
    assert (found_status, found_kind) == (status, kind), found
    assert terminal.fill(answer) in found


def test_the_lines_use_each_route() -> None:
    typed = {line.split("$API", 1)[1].split()[0].rstrip("'").partition("?")[0] for line, *_ in LINES}
    routes = {f"{path}{end}" for path, ends in {
        "": ("/healthz", "/status", "/targets", "/jobs", "/jobs/upload"),
        "/jobs/$DONE": ("", "/log", "/log/stream", "/abort"),
    }.items() for end in ends}  # fmt: skip
    assert routes <= typed


def test_a_prompt_is_sent_followed_and_aborted_with_curl(terminal: Terminal) -> None:
    prompt = json.dumps({"repo": "shop", "branch": "main", "markdown_text": "---\nlabel: live\n---\ntidy up"})
    sent = f"curl -u mam:$TOKEN $API/jobs -d '{prompt}'"
    job_id = terminal.names["LIVE"] = json.loads(terminal.type(sent)[2])["job_id"]
    assert json.loads(terminal.type("curl -u mam:$TOKEN $API/jobs/$LIVE")[2])["state"] == "queued"
    claim = terminal.served.registry.pick("live", owner="a test")
    assert claim is not None
    following = terminal.words("curl -N -u mam:$TOKEN $API/jobs/$LIVE/log/stream")
    with open(log_of(terminal.served, job_id), "wb", buffering=0) as log:
        log.write(b"first\n")
        with subprocess.Popen(following, stdout=subprocess.PIPE, text=True) as curl:
            assert curl.stdout is not None
            assert [curl.stdout.readline() for _ in range(3)] == ["id: 6\n", "data: first\n", "\n"]
            log.write(b"second\n")  # while the job runs
            assert [curl.stdout.readline() for _ in range(3)] == ["id: 13\n", "data: second\n", "\n"]
            aborted = json.loads(terminal.type("curl -u mam:$TOKEN -X POST $API/jobs/$LIVE/abort")[2])
            assert (aborted["job_id"], aborted["previous_state"]) == (job_id, "running")
            assert not curl.stdout.read()  # the stream ends with the job
        assert curl.returncode == 0
    assert json.loads(terminal.type("curl -u mam:$TOKEN $API/jobs/$LIVE")[2])["state"] == "aborted"

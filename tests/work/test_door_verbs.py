"""The real commands inside a job: they need no store, and reach nothing but their job and its children."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mam import questions
from mam.audit.sync import AuditLog
from mam.jobs.question import open_questions
from mam.jobs.question_acts import Answer
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.work.door.server import DoorServer
from tests.cli.command import LONGEST, Mam, Ran, finish
from tests.waiting import await_that
from tests.work.doors import claimed, held_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.work.door.server import Door

MIB = 1 << 20


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the worker's store is: nowhere near the agent."""
    create_files_store(str(tmp_path / "worker" / "jobs"))
    return tmp_path / "worker"


@pytest.fixture
def registry(home: Path) -> Registry:
    return Registry(FilesStore(str(home / "jobs")), AuditLog(str(home / "logs")))


@pytest.fixture
def door_server(registry: Registry, home: Path) -> Iterator[DoorServer]:
    with DoorServer(registry, logs_dir=str(home / "logs")) as door_server:
        yield door_server


@pytest.fixture
def job(registry: Registry) -> Job:
    return held_job(registry)


@pytest.fixture
def door(door_server: DoorServer, job: Job) -> Door:
    return door_server.open(job.job_id, job.attempt, "/", claim_id=job.claim_id)


@pytest.fixture
def mam(tmp_path: Path, door: Door) -> Iterator[Mam]:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    mam = Mam(here, home)
    mam.env.update(door.environment)
    yield mam
    assert os.listdir(here) == [], "a command inside a job made something"


def answer(registry: Registry, job: Job, text: str, reason: str | None = None) -> None:
    question = open_questions(registry.get(job.job_id))[0]
    given = Answer(
        number=question.number, attempt=1, digest=question.digest, answer=text, by="anna@pc", reason=reason
    )  # fmt: skip
    questions.answer(registry, job.job_id, given)


def test_reports_reach_the_worker(registry: Registry, job: Job, mam: Mam) -> None:
    assert mam("publish", "progress", "--detail", "half").line == "1"
    assert mam("publish", job.job_id, "progress", "--data", '{"percent": 50}').line == "2"
    assert mam("publish", "--job", job.job_id[:10], "permission_required").line == "3"
    assert mam("heartbeat").line.endswith("Z")
    assert mam("fail", "--reason", "not yet", "--retryable").line == "reported; the worker ends it now"
    assert mam("complete", "--result", "done").line == "reported; the worker checks it now"
    record = registry.get(job.job_id)
    assert (record.status, record.last_seq) == ("running", 3)
    assert (record.said or {})["result"] == "done"
    assert registry.store.events(job.job_id)[1]["data"] == {"percent": 50}


def test_a_command_of_another_claim_is_refused(registry: Registry, job: Job, mam: Mam) -> None:
    before = registry.get(job.job_id)
    for words in (["publish", "progress"], ["heartbeat"], ["complete"], ["fail", "--reason", "x"]):
        mam(*words, MAM_CLAIM="another").failed(4, "another claim of attempt 1")
    mam("complete", MAM_CLAIM="not one").failed(2, "claim")
    assert registry.get(job.job_id) == before
    assert mam("complete", MAM_CLAIM="").line == "reported; the worker checks it now"
    assert mam("complete", "--attempt", "1").line == "reported; the worker checks it now"


def test_a_job_reads_itself(registry: Registry, job: Job, mam: Mam) -> None:
    assert mam("get").json == registry.get(job.job_id).to_json()
    assert mam("get", "--field", "prompt").out == "do it"
    assert mam("status", job.job_id).line == "running"
    mam("result", job.job_id).failed(1, "no result yet")
    assert mam("publish", "progress", "--json").json == registry.get(job.job_id).to_json()
    lines = mam("logs", job.job_id).out.splitlines()
    assert "registered" in lines[0]
    assert "#1 progress" in lines[-1]
    assert mam("logs", job.job_id, "--tail", "1").line == lines[-1]


def test_a_job_hands_out_work_and_waits_for_it(registry: Registry, job: Job, mam: Mam) -> None:
    child = mam("register", "a part of it", "--agent", "codex").line
    record = registry.get(child)
    assert (record.parent_id, record.depth, record.workdir) == (job.job_id, 1, str(mam.here))
    assert mam("status", child[:12]).line == "pending"
    waiting = mam.start("wait", child, "--timeout", str(LONGEST))
    held = claimed(registry, registry.get(child))
    registry.publish(child, event="progress", attempt=held.attempt)
    registry.release(child, attempt=held.attempt)
    registry.complete(child, result="the part")
    ended = finish(waiting)
    assert ended.code == 0, ended.stderr
    assert ended.out == f"{child}\tcompleted\n"
    assert mam("result", child).out == "the part"
    assert "completed" in mam("logs", child).out
    assert mam("wait", child, "--timeout", "0").line.startswith(child)


def test_the_ends_of_children_are_exit_codes(registry: Registry, mam: Mam) -> None:
    failed, cancelled = (mam("register", "p", "--agent", "codex").line for _ in range(2))
    assert mam("wait", failed, "--timeout", "0").code == 5
    registry.publish(failed, event="started")
    registry.fail(failed, reason="no")
    registry.cancel(cancelled)
    assert mam("wait", failed, cancelled).code == 7
    assert mam("wait", cancelled).code == 8
    both = mam("wait", cancelled, failed, "--json")
    assert [record["status"] for record in both.json] == ["cancelled", "error"]


def test_a_warning_if_no_other_worker_could_do_the_work(mam: Mam) -> None:
    same = mam("register", "p", "--agent", "shell").line
    other = mam("register", "p", "--agent", "codex").line
    warned = mam("wait", same, other, "--timeout", "0")
    assert warned.code == 5
    assert warned.stderr.splitlines()[0].startswith(f"mam: {same[:8]} is for the label shell of this job")
    assert len(mam("wait", other, "--timeout", "0").stderr.splitlines()) == 1


def test_other_jobs_do_not_exist(registry: Registry, mam: Mam) -> None:
    other = held_job(registry, "codex")
    for words in (
        ["publish", other.job_id, "progress"], ["complete", other.job_id], ["fail", other.job_id, "--reason", "x"],
        ["heartbeat", other.job_id], ["get", other.job_id], ["status", other.job_id], ["result", other.job_id],
        ["logs", other.job_id], ["cancel", other.job_id], ["release", other.job_id],
    ):  # fmt: skip
        ran = mam(*words)
        assert (ran.code, ran.out) == (1, ""), words
    assert mam("wait", other.job_id, "--timeout", "0").code == 1
    for words in (["list"], ["pick", "-s", "codex"], ["explain", other.job_id], ["retry", other.job_id]):
        mam(*words).failed(1, "takes only publish")
    assert registry.get(other.job_id) == other


def test_bad_arguments_are_rejected_as_without_a_door(mam: Mam) -> None:
    mam("publish", "nonsense").failed(2, "nonsense", "choose from")
    mam("publish", "progress", "--data", "[]").failed(2, "JSON object")
    mam("publish", "progress", "--data", "[" * 5000).failed(2, "levels deep")
    mam("complete", MAM_ATTEMPT="one").failed(2, "MAM_ATTEMPT")
    mam("complete", "--attempt", "7").failed(4, "attempt 1")
    mam("complete", MAM_ATTEMPT="2").failed(4, "attempt 1")
    mam("wait", mam.env["MAM_JOB_ID"]).failed(1, "own end")
    mam("status", mam.env["MAM_JOB_ID"], "--set", "completed").failed(1, "takes only")


def test_an_agent_whose_job_was_taken_over_gets_an_error(registry: Registry, job: Job, mam: Mam) -> None:
    registry.cancel(job.job_id)
    for words in (["publish", "progress"], ["heartbeat"], ["complete"], ["register", "p", "--agent", "a"]):
        mam(*words).failed(4, "cancelled")
    mam("heartbeat", "--attempt", "3").failed(4, "attempt 1")
    refused = [line for line in mam("logs", job.job_id, "--json").out.splitlines() if '"refused"' in line]
    assert len(refused) == 5


def test_wild_text_passes_as_it_is(registry: Registry, job: Job, mam: Mam) -> None:
    wild = 'a"\\\n\t\x01\x1b[31mü😀\u202e'
    assert mam("complete", "--result", wild).code == 0
    assert (registry.get(job.job_id).said or {})["result"] == wild
    assert mam("complete", "--result-file", "-", stdin=(wild * (8 * MIB // 30)).encode()).code == 0
    assert (registry.get(job.job_id).said or {})["result"] == wild * (8 * MIB // 30)
    mam("complete", "--result-file", "-", stdin=b"x" * (8 * MIB + 1)).failed(2, "8,388,608")
    mam("complete", "--result", "\udcff").failed(2, "UTF-8")
    child = mam("register", "--prompt-file", "-", "--agent", "a", stdin=b"y" * 8 * MIB).line
    assert registry.get(child).prompt == "y" * 8 * MIB
    assert mam("get", child, "--field", "prompt").out == "y" * 8 * MIB
    mam("publish", "progress", "--detail", wild)
    assert "\n" not in registry.store.events(job.job_id)[0]["detail"]


def test_a_named_store_is_used_instead(mam: Mam, tmp_path: Path) -> None:
    store = str(tmp_path / "other")
    made = mam("register", "p", "--agent", "a", "--store", store)
    assert "not in this store" in made.stderr
    assert mam("get", made.out.strip(), "--store", store).json["parent_id"] is None
    mam("publish", "progress", "--registry-dir", store).failed(1, "No job")


def test_without_a_worker_and_without_a_store(door: Door, mam: Mam) -> None:
    door.close()
    for words in (["publish", "progress"], ["complete"], ["get"], ["register", "p", "--agent", "a"]):
        mam(*words).failed(9, "the worker that opened this socket is gone")
    mam("publish", "progress", MAM_SOCKET="/nowhere" * 30).failed(9, "gone")
    mam("publish", "progress", MAM_SOCKET=str(mam.home)).failed(9, "gone")


def test_without_a_worker_the_store_knows_what_became_of_the_job(
    registry: Registry, door: Door, job: Job, mam: Mam, home: Path
) -> None:
    door.close()
    store = str(home / "jobs")
    published = mam("publish", "progress", MAM_STORE=store)
    assert (published.code, published.out) == (0, "1\n")
    assert "Using the store" in published.stderr
    registry.release(job.job_id, attempt=1)
    lost = mam("complete", MAM_STORE=store)
    assert lost.code == 4
    assert registry.get(job.job_id).status == "pending"


def test_a_worker_that_dies_before_it_answers(mam: Mam, tmp_path: Path) -> None:
    """Whether the event was stored is not known, so it is not sent anywhere else."""
    import socket
    import threading

    address = f"/tmp/mam-test-{os.urandom(8).hex()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()

    def take_and_go() -> None:
        connection, _ = listener.accept()
        connection.recv(1)
        connection.close()

    taker = threading.Thread(target=take_and_go)
    taker.start()
    try:
        mam("publish", "progress", MAM_SOCKET=address).failed(9, "not known")
    finally:
        taker.join(LONGEST)
        listener.close()
        os.unlink(address)


HOT = [
    "json",
    "re",
    "enum",
    "socket",
    "mam.registry",
    "mam.config.settings",
    "mam.location.stores",
    "mam.jobs.record",
    "mam.stores",
]


@pytest.mark.parametrize(
    "words",
    [["publish", "progress", "--detail", "half"], ["complete", "--result", "done"], ["fail", "--reason", "no"],
     ["heartbeat"]],
)  # fmt: skip
def test_hot_verbs_import_next_to_nothing(mam: Mam, words: list[str]) -> None:
    program = "import sys; from mam.__main__ import run; code = run(sys.argv[1:]); print(*sys.modules); sys.exit(code)"
    before = _python(mam, "import sys; print(*sys.modules)").out.split()
    ran = _python(mam, program, *words)
    assert ran.code == 0, ran.stderr
    loaded = ran.out.split()
    assert "mam.door_client" in loaded
    assert not {name for name in HOT if name in loaded and name not in before}


def _python(mam: Mam, program: str, *words: str) -> Ran:
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, env=mam.env, cwd=mam.here, timeout=LONGEST
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode())


def test_an_agent_asks_a_person_through_its_door(registry: Registry, job: Job, mam: Mam) -> None:
    """It has no store; a person answers in another terminal."""
    assert mam("ask", "Which database?", "--choice", "sqlite", "--choice", "postgres").line == f"{job.job_id}.1"
    waiter = mam.start("ask", "Which database?", "--choice", "sqlite", "--choice", "postgres", "--wait")
    answer(registry, job, "sqlite", "we have it")
    ran = finish(waiter)
    assert (ran.line, ran.stderr) == ("sqlite", "mam: we have it\n")
    pushing = ("ask", "May I?", "--tool", "Bash", "--input", '{"command": "git push"}')
    waiter = mam.start(*pushing, "--wait")
    await_that(lambda: open_questions(registry.get(job.job_id)))
    question = open_questions(registry.get(job.job_id))[0]
    assert (question.kind, question.tool, question.input) == ("permission", "Bash", {"command": "git push"})
    answer(registry, job, "always")
    assert finish(waiter).line == "allow"
    assert mam(*pushing).line == "allow", "an answer always holds for the next time"
    assert mam("ask", "And?", "--deadline", "0s", "--default", "no", "--wait").line == "no"
    assert mam("ask", "What?", "--json").json["state"] == "open"
    mam("ask", "What?", "--wait", "--timeout", "0").failed(5, "is not answered")


def test_bad_questions_of_an_agent_change_nothing(registry: Registry, job: Job, mam: Mam) -> None:
    mam("ask").failed(2, "give the question")
    mam("ask", " ").failed(2, "empty")
    mam("ask", "x", "--input", "{}").failed(2, "--tool")
    for bad in ("", "[]", "{", '{"a": NaN}'):
        mam("ask", "x", "--tool", "Bash", "--input", bad).failed(2, "JSON object")
    mam("ask", "x", "--attempt", "2").failed(4, "attempt 1")
    mam("answer", job.job_id, "x").failed(1, "only a person")
    assert registry.get(job.job_id).questions == []

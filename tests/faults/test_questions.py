"""The test kills the worker, the agent that asks, and the answerer, between the question and its answer.

Nothing runs without an answer for its own attempt, a question has one answer, and the job ends.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mam import questions
from mam.registry import Registry
from tests.faults.amount import DOSE
from tests.faults.answer_races import race_answers
from tests.faults.store_kinds import STORE_KINDS, StoreKind
from tests.waiting import PATIENCE, await_that

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Job
    from mam.questions import Asked
    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

RACES = 1000 if DOSE > 1 else 50
"""On each kind of store."""
LIVES = 6 * DOSE
VICTIMS = ("worker", "asker", "answerer")

ASKING = """\
import json, os
from mam.jobs.question import Draft
from mam.work.asking.finding import find_asker
asker = find_asker(os.environ)
with open("asking", "w") as file:
    file.write(str(os.getpid()))
decision = asker.decide(Draft(kind="permission", text="May it run?", tool="Bash", input={"command": "run"}))
with open("ran", "a") as file:
    told = [os.environ["MAM_JOB_ID"], os.environ["MAM_ATTEMPT"], decision.question, decision.outcome]
    print(json.dumps(told), file=file, flush=True)
raise SystemExit(0 if decision.is_allowed else 1)
"""

on_every_store_kind = pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))


class Place:
    """A store with a job that asks, and the commands that run it."""

    def __init__(self, store_kind: StoreKind, folder: Path) -> None:
        self.folder = folder
        self._store_kind = store_kind
        store_kind.make(folder)
        (folder / "asking.py").write_text(ASKING, encoding="utf-8")
        names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MAM_AGENTS_DIR")
        own = dict.fromkeys(names, str(folder / "own"))
        (folder / "own").mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.env = {**kept, **own, "MAM_STORE": store_kind.address(folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def store(self) -> Store:
        return self._store_kind.open(self.folder)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "mam", *words], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def worker(self, job_id: str) -> subprocess.Popen[bytes]:
        return self.start("worker", "-s", "shell", "--job", job_id, "--once", "--lease", "1", "--grace", "0")

    def register(self, registry: Registry) -> str:
        command = f"{sys.executable} asking.py"
        return registry.register(
            prompt=command, agent="shell", workdir=str(self.folder), origin_host=os.uname().nodename
        ).job.job_id  # fmt: skip

    def ran(self) -> list[tuple[str, int, int, str]]:
        """What the agents did: the job, the attempt, the question, and the outcome that they got."""
        path = self.folder / "ran"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        told = map(json.loads, lines)
        return [(job_id, int(attempt), question, outcome) for job_id, attempt, question, outcome in told]


@pytest.fixture
def place(store_kind: StoreKind, folder: Path) -> Place:
    return Place(store_kind, folder)


@pytest.fixture
def registry(place: Place) -> Iterator[Registry]:
    store = place.store()
    yield Registry(store)
    store.close()


def open_question(registry: Registry, job_id: str, worker: subprocess.Popen[bytes]) -> Asked:
    """The open question of the job, once there is one."""
    found: list[Asked] = []

    def is_there() -> bool:
        found[:] = [one for one in questions.open_now(registry) if one.job.job_id == job_id]
        assert worker.poll() is None, "the worker has ended"
        return bool(found)

    await_that(is_there)
    return found[0]


def kill(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return


@on_every_store_kind
def test_everyone_is_killed_between_a_question_and_its_answer(
    place: Place, registry: Registry, store_kind: StoreKind
) -> None:
    """The test kills one process for each job: before the answer, while it is written, or right after it. It disturbs
    no later process."""
    chance = random.Random(f"questions {store_kind.name}")
    for _ in range(LIVES):
        job_id = place.register(registry)
        victim, is_early = chance.choice(VICTIMS), chance.random() < 0.3
        _live(place, registry, job_id, chance.choice(("allow", "deny")), victim, is_early=is_early)
        _check(registry.get(job_id), place)
        if not registry.get(job_id).status.ended:
            assert victim != "answerer"
            _live(place, registry, job_id, "allow", None, is_early=False)
            _check(registry.get(job_id), place)
        job = registry.get(job_id)
        outcomes = [outcome for found, _, _, outcome in place.ran() if found == job_id]
        assert job.status in ("completed", "error"), (victim, is_early, job.status)
        if job.status == "completed" or victim != "asker":
            assert outcomes[-1] == ("allow" if job.status == "completed" else "deny"), (victim, is_early, job.reason)


def _live(
    place: Place, registry: Registry, job_id: str, answer: str, victim: str | None, *, is_early: bool
) -> None:  # fmt: skip
    """Runs one worker, until it is killed or ends."""
    worker = place.worker(job_id)
    processes = [worker]
    try:
        asked = open_question(registry, job_id, worker)
        caller = int((place.folder / "asking").read_text(encoding="utf-8"))
        if is_early and victim in ("worker", "asker"):
            kill(worker.pid if victim == "worker" else caller)
        answerer = place.start("answer", asked.id, answer)
        processes.append(answerer)
        if victim == "answerer":
            kill(answerer.pid)
            answerer.wait(PATIENCE)
            processes.append(again := place.start("answer", asked.id, answer))
            assert again.wait(PATIENCE) in (0, 4), "the first one may have won before it was killed"
        elif victim is not None:
            kill(worker.pid if victim == "worker" else caller)
        assert answerer.wait(PATIENCE) in (0, 1, 4, -9)
        worker.wait(PATIENCE)
    finally:
        for process in processes:
            if process.poll() is None:
                kill(process.pid)
            process.communicate()
    await_that(lambda: not _is_running(registry, job_id))


def _is_running(registry: Registry, job_id: str) -> bool:
    registry.sweep_if_due()
    return registry.get(job_id).status == "running"


def _check(job: Job, place: Place) -> None:
    """The record: one question of each attempt, closed with its attempt. What ran was allowed under its attempt."""
    known: dict[int, dict[str, Any]] = {fields["number"]: fields for fields in job.questions}
    assert all(fields.get("state", "open") != "open" for fields in known.values())
    for job_id, attempt, number, outcome in place.ran():
        if job_id == job.job_id and outcome != "withdrawn":
            question = known[number]
            assert question["attempt"] == attempt
            assert question.get("answer") == outcome, "the agent got what a person answered, and nothing else"


@on_every_store_kind
def test_of_two_answerers_one_wins(place: Place, registry: Registry, store_kind: StoreKind) -> None:
    race_answers(registry, partial(store_kind.open, place.folder), place.folder, RACES)

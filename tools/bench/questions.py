"""What a question costs an agent: from its request to the question in the store, and from the answer to the go-ahead.

The agent is a job of a real worker. It asks in both ways that agents have: by a hook, which is a process of its own,
and by a driver, which runs as long as the agent. Both are compared with a hook that answers at once.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from threading import Thread
from typing import TYPE_CHECKING

from mam import questions
from mam.jobs.question_acts import Answer
from tools.bench.common import Row, Rows
from tools.bench.worker import BenchWorker, files_store, sqlite_store

if TYPE_CHECKING:
    from pathlib import Path

    from mam.stores.port import Store

ROUNDS, WARM = 30, 2
HOOK, DRIVER = "a hook", "a driver"
REQUEST = (
    '{"hook_event_name": "PermissionRequest", "session_id": "x", "tool_name": "Bash", '
    '"tool_input": {"command": "npm test"}}'
)
_BARE = 'import sys; sys.stdin.read(); print(\'{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}\')'
_AGENT = f"""
import os, subprocess, sys, time
from mam.work.asking.finding import find_asker
from mam.work.drivers.claude_requests import permission_of
hook = [sys.executable, "-P", "-m", "mam.work.drivers.claude_hook"]
request = {REQUEST!r}
def ask_by_hook():
    subprocess.run(hook, input=request.encode(), stdout=subprocess.DEVNULL, check=True)
def ask_by_driver():
    find_asker(os.environ).decide(permission_of({REQUEST}))
ask = ask_by_hook if sys.argv[1] == {HOOK!r} else ask_by_driver
with open(sys.argv[2], "w") as times:
    for _ in range({ROUNDS + WARM}):
        begun = time.perf_counter()
        ask()
        print(begun, time.perf_counter(), file=times, flush=True)
"""


def measure_questions(folder: Path) -> Rows:
    bare = _bare_hook()
    rows: Rows = []
    stores: dict[str, Store] = {"files": files_store(folder / "jobs"), "SQLite": sqlite_store(folder / "jobs.db")}
    for name, store in stores.items():
        bench = BenchWorker(store, folder / f"{name}-work")
        for way in (HOOK, DRIVER):
            asked, went_on = _asked(bench, way, folder / f"{name}-{way.split()[-1]}")
            against = "a hook that answers at once"
            rows += [
                Row(f"{name}: {way}: from the request to the question in the store", against, asked, bare, "none set"),
                Row(f"{name}: {way}: from the answer to the go-ahead", against, went_on, bare, "none set"),
            ]
        bench.context.close()
        store.close()
    return rows


def _bare_hook() -> float:
    def run() -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", _BARE], input=REQUEST.encode(), stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begun

    return statistics.median([run() for _ in range(ROUNDS + WARM)][WARM:])


def _asked(bench: BenchWorker, way: str, folder: Path) -> tuple[float, float]:
    """The clock is that of the system, so the times of both processes can be compared."""
    folder.mkdir()
    agent, times = folder / "agent.py", folder / "times"
    agent.write_text(_AGENT, encoding="utf-8")
    asked: list[float] = []
    answered: list[float] = []
    with bench.at_work():
        answering = Thread(target=lambda: _answer_all(bench, asked, answered))
        answering.start()
        job = bench.register(f"exec {sys.executable} {agent} '{way}' {times}")
        for _ in bench.registry.follow([job], timeout=600):
            pass
        answering.join()
    spans = [tuple(map(float, line.split())) for line in times.read_text("utf-8").splitlines()]
    first = [at - begun for (begun, _), at in zip(spans, asked, strict=True)]
    second = [ended - at for (_, ended), at in zip(spans, answered, strict=True)]
    return statistics.median(first[WARM:]), statistics.median(second[WARM:])


def _answer_all(bench: BenchWorker, asked: list[float], answered: list[float]) -> None:
    registry = bench.registry
    while len(answered) < ROUNDS + WARM:
        offset = registry.store.end_offset()
        for found in questions.open_now(registry):
            asked.append(time.perf_counter())
            question = found.question
            given = Answer(
                number=question.number, attempt=question.attempt, digest=question.digest, answer="allow", by="bench"
            )
            answered.append(time.perf_counter())
            questions.answer(registry, found.job.job_id, given)
            break
        else:
            registry.wait_for_change(offset, 5.0)

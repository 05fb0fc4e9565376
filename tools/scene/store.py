"""Makes the store: what happened in two weeks, and ten jobs that live now. Every write is one of the registry's."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

from mam import questions
from mam.audit.sync import AuditLog
from mam.jobs import worker_acts
from mam.jobs.ending import End
from mam.jobs.lease import new_lease
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.jobs.record import Job
from mam.jobs.status import COMPLETED, ERROR
from mam.jobs.workers import WorkerEntry
from mam.registry import Registry
from mam.stores.outputs import ARTIFACT, DIFF, AttemptId, OutputLimits, Piece
from mam.stores.port import ClaimRequest
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock
from tools.scene.output import Claude, codex

MINUTE, HOUR, DAY = 60, 3_600, 86_400
HOST, OTHER_HOST = "forge", "anvil"
LONG_LEASE = 30 * DAY

CALENDAR_DIFF = """\
diff --git a/tests/test_calendar.py b/tests/test_calendar.py
index 4f2a91c..9b01d7e 100644
--- a/tests/test_calendar.py
+++ b/tests/test_calendar.py
@@ -1,8 +1,9 @@
 from datetime import datetime, timedelta

+from freezegun import freeze_time
 from shop.calendar import today


 def test_today_is_one_day():
-    start = datetime.now()
-    end = datetime.now() + timedelta(days=1)
-    assert (end - start).days == 1
+    with freeze_time("2026-06-19 23:59:59.9"):
+        start = datetime.now()
+        end = start + timedelta(days=1)
+    assert (end - start).days == 1
+    assert today(start) != today(end)
diff --git a/report.md b/report.md
new file mode 100644
index 0000000..c3d27b5
--- /dev/null
+++ b/report.md
@@ -0,0 +1,5 @@
+# Why the calendar test was flaky
+
+It took the time twice. Midnight could be between the two.
+
+The test now freezes the clock. 200 runs in a row passed.
"""
REPORT = (
    "# Why the calendar test was flaky\n\nIt took the time twice. Midnight could be between the two.\n\n"
    "The test now freezes the clock. **200 runs** in a row passed.\n"
)


class Scene:
    """A store in `directory`, whose clock ends at the present."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, "mam.sqlite")
        self.clock = FakeClock(wall_ms=int(time.time() * 1000) - 15 * DAY * 1000)
        create_sqlite_store(self.path)
        self.store = SqliteStore(self.path, self.clock)
        self.registry = Registry(self.store, AuditLog(os.path.join(directory, "logs")))
        self._left = 15.0 * DAY
        self.ids: dict[str, str] = {}

    def at(self, seconds_ago: float) -> None:
        """Moves the clock forward to so long before the present."""
        assert seconds_ago <= self._left, "the scene adds its jobs in the order of time"
        self.clock.advance(self._left - seconds_ago)
        self._left = seconds_ago

    # -- acts ------------------------------------------------------------------------------------------------------

    def register(self, name: str, prompt: str, agent: str = "claude-code", label: str = "shop", **choices: Any) -> str:
        registered = self.registry.register(prompt=prompt, agent=agent, label=label, max_retries=3, **choices)
        self.ids[name] = registered.job.job_id
        return registered.job.job_id

    def start(self, name: str, *, host: str = HOST, branch: str = "") -> Job:
        job = self.store.get(self.ids[name])
        request = ClaimRequest(label=job.agent_session, owner=f"worker@{host}:2210", lease_seconds=LONG_LEASE,
                               supervised=True, job_id=job.job_id, host=host)  # fmt: skip
        claimed = self.registry.claim(request)
        assert claimed is not None, name
        run = {"host": host, "place": f"/home/anna/{job.agent_session}", **({"branch": branch} if branch else {})}
        return self.registry.act(job.job_id, "started", partial(worker_acts.started, attempt=claimed.attempt, run=run))

    def progress(self, name: str, detail: str) -> None:
        job = self.store.get(self.ids[name])
        self.registry.publish(job.job_id, event="progress", detail=detail, attempt=job.attempt)

    def prints(self, name: str, data: bytes) -> None:
        job = self.store.get(self.ids[name])
        attempt = AttemptId(job_id=job.job_id, attempt=job.attempt, claim_id=job.claim_id)
        self.store.outputs.append(attempt, Piece(start=0, data=data), OutputLimits())

    def keeps(self, name: str, kind: str, path: str, data: bytes) -> None:
        job = self.store.get(self.ids[name])
        attempt = AttemptId(job_id=job.job_id, attempt=job.attempt, claim_id=job.claim_id)
        self.store.outputs.put(attempt, kind, path, data, OutputLimits())

    def ends(
        self, name: str, *, result: str | None = None, reason: str | None = None, checks: dict[str, Any] | None = None,
        run: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        job = self.store.get(self.ids[name])
        ended = End(
            status=COMPLETED if reason is None else ERROR, attempt=job.attempt, claim_id=job.claim_id, supervised=True,
            result=result, reason=reason, checks=checks, run={**(job.run or {}), **(run or {})},
        )  # fmt: skip
        self.registry.end(job.job_id, "finish", ended)

    def asks(self, name: str, **draft: Any) -> str:
        job = self.store.get(self.ids[name])
        return questions.ask(self.registry, job.job_id, Draft(**draft), attempt=job.attempt).id

    def worker(self, host: str, pid: int, labels: tuple[str, ...], agents: tuple[str, ...], slots: int) -> None:
        now = self.clock.now()
        self.store.note_worker(WorkerEntry(
            name=f"worker@{host}:{pid}", owner=f"worker@{host}:{pid}", host=host, pid=pid, labels=labels, agents=agents,
            concurrency=slots, job_id=None, version="0.1.0", started_at=now.second, seen_at=now.second,
            lease=new_lease(LONG_LEASE, now),
        ))  # fmt: skip


def spent(usd: float, tokens: int, seconds: float) -> dict[str, Any]:
    """What an agent reports about its cost."""
    agent = {
        "session": "5b0d9c1e",
        "tokens": {"input": tokens, "cached": tokens * 3, "output": tokens // 20},
        "cost_usd": usd,
    }
    return {"agent": agent, "wall_seconds": seconds}


def make_scene(directory: str) -> Scene:
    scene = Scene(directory)
    _past(scene)
    _ended_today(scene)
    _live(scene)
    scene.at(0)
    scene.worker(HOST, 2210, ("shop", "billing", "research"), ("claude-code", "codex"), 6)
    scene.worker(OTHER_HOST, 871, ("ci", "docs"), ("opencode", "claude-code", "shell"), 3)
    return scene


def _past(scene: Scene) -> None:
    """Two weeks of work, with fewer jobs on some days."""
    tasks = ("Add an index to the orders", "Update the dependencies", "Port the mailer", "Tidy the fixtures",
             "Find the slow query", "Write tests for the cart", "Translate the help page")  # fmt: skip
    agents = ("claude-code", "codex", "claude-code", "opencode")
    for day in range(14, 0, -1):
        for number in range(2 + (day * 5) % 7):
            begin = day * DAY - number * 40 * MINUTE
            name = f"past {day} {number}"
            scene.at(begin)
            scene.register(
                name,
                tasks[(day + number) % len(tasks)],
                agents[(day + number) % 4],
                ("shop", "billing", "docs")[number % 3],
            )
            scene.at(begin - 3 * MINUTE)
            scene.start(name)
            scene.at(begin - (8 + number * 4) * MINUTE)
            cost = spent(0.09 * (1 + (day * number) % 9), 9_000 * (1 + number), 300.0)
            if (day + 2 * number) % 9 == 4:
                scene.ends(name, reason="check.sh ended with 1", run=cost)
                scene.registry.mark_seen(scene.ids[name], by="anna")
            else:
                scene.ends(name, result="Done.", run=cost)


def _ended_today(scene: Scene) -> None:
    scene.at(95 * MINUTE)
    scene.register("flaky", "Fix the flaky calendar test\n\n`tests/test_calendar.py` fails about once in twenty runs. "
                   "Find out why and fix it. Leave a `report.md`.", artifacts=["report.md"],
                   workspace="worktree", workdir="/home/anna/shop")  # fmt: skip
    scene.at(92 * MINUTE)
    scene.start("flaky", host=OTHER_HOST)
    scene.at(84 * MINUTE)
    scene.registry.release(scene.ids["flaky"], attempt=1)
    scene.at(82 * MINUTE)
    scene.start("flaky", branch="mam/fix-flaky")
    scene.at(79 * MINUTE)
    asked = scene.asks("flaky", kind="permission", text="Run the test 200 times", tool="Bash",
                       input={"command": "pytest tests/test_calendar.py --count 200 -n 2"})  # fmt: skip
    scene.at(78.3 * MINUTE)
    found = questions.find(scene.registry, asked)
    questions.answer(
        scene.registry,
        found.job.job_id,
        Answer(number=1, attempt=2, digest=found.question.digest, answer="allow", by="anna-phone"),
    )
    _print_flaky(scene)
    scene.at(75 * MINUTE)
    size = len(REPORT)
    scene.ends(
        "flaky", result="The test took the time twice, and midnight could be between. It now freezes the clock;"
        " **200 of 200 runs** passed.",
        checks={"artifacts": [{"path": "/home/anna/shop/report.md", "size": size, "sha256": "0" * 64}],
                "script": {"exit_code": 0, "output": "200 passed in 41.20s"}, "problem": None},
        run={**spent(0.31, 36_000, 420.0), "changes": {
            "repository": "/home/anna/shop/.git", "directory": "/home/anna/shop-fix",
            "before": "1" * 40, "after": "2" * 40,
            "branch": "mam/fix-flaky", "files": 2, "added": 11, "removed": 3}})  # fmt: skip
    scene.at(40 * MINUTE)
    scene.register("notes", "Write the release notes for 2.4", "opencode", "docs", artifacts=["NOTES.md"])
    scene.start("notes", host=OTHER_HOST)
    scene.at(22 * MINUTE)
    scene.ends("notes", reason="NOTES.md is not there (looked in /home/anna/docs)", run=spent(0.12, 14_000, 700.0))


def _print_flaky(scene: Scene) -> None:
    talk = (
        Claude().say("I'll run the test in a loop first.")
        .ran("pytest tests/test_calendar.py --count 40 -q",
             "\x1b[31mFAILED\x1b[0m tests/test_calendar.py::test_today_is_one_day\n38 passed, 2 failed in 12.31s", 1)
        .read("/home/anna/shop/tests/test_calendar.py", 31).read("/home/anna/shop/shop/calendar.py", 88)
        .think("The two failures are at 00:00:00. The test calls now() twice.")
        .say("It compares two calls of `datetime.now()`. If midnight is between them, the days differ.")
        .edit("/home/anna/shop/tests/test_calendar.py", "-    start = datetime.now()",
              "-    end = datetime.now() + timedelta(days=1)", '+    with freeze_time("2026-06-19 23:59:59.9"):',
              "+        start = datetime.now()", "+        end = start + timedelta(days=1)")
        .ran("pytest tests/test_calendar.py --count 200 -n 2", "\x1b[32m200 passed\x1b[0m in 41.20s")
        .write("/home/anna/shop/report.md", REPORT)
        .say("200 of 200 passed. `report.md` says what was wrong.").end(0.31, 36_000)
    )  # fmt: skip
    scene.prints("flaky", talk.data())
    scene.keeps("flaky", DIFF, "", CALENDAR_DIFF.encode())
    scene.keeps("flaky", ARTIFACT, "/home/anna/shop/report.md", REPORT.encode())


def _live(scene: Scene) -> None:
    """Ten jobs: two ask, four run, one is quiet, three wait."""
    scene.at(21.9 * MINUTE)
    scene.register("interviews", "Summarise the 40 interviews", label="research")
    scene.start("interviews")
    scene.progress("interviews", "the model has not answered")
    scene.at(20 * MINUTE)
    scene.register("invoices", "Migrate the invoices table", "codex", "billing")
    scene.register(
        "data", "python upload.py --all", "shell", "data", due_ms=scene.clock.now().wall_ms + 4 * HOUR * 1000
    )
    scene.start("invoices")
    scene.at(17 * MINUTE)
    scene.register("payments", "Upgrade the payment client to version 3", label="billing")
    scene.start("payments")
    scene.at(15 * MINUTE)
    scene.register("hints", "Type hints for the parser", "codex")
    scene.start("hints")
    scene.at(12 * MINUTE)
    scene.register("login", "Add rate limiting to the login route\n\nFive tries a minute for each address, then 429.")
    scene.start("login")
    scene.register("build", "Find out why the nightly build is slow", "opencode", "ci")
    scene.at(9 * MINUTE)
    scene.start("build", host=OTHER_HOST)
    scene.register(
        "book",
        "Write the book from the chapters",
        label="book",
        after=[scene.ids["hints"], scene.ids["build"], scene.ids["flaky"]],
    )
    scene.at(5 * MINUTE)
    scene.register("review", "Review the pull request of the importer", "codex", "reviews")
    scene.at(4 * MINUTE)
    scene.register("importer", "Port the importer to async")
    scene.start("importer")
    scene.at(60)
    scene.progress("importer", "editing src/importer/reader.py (+84 −31)")
    scene.progress("build", "reading the build log, 3 of 7")
    scene.progress("hints", "pytest: 214 passed, 2 failed")
    scene.progress("payments", "npm install --save payments@3")
    scene.prints("login", (
        Claude().say("I'll look at the route and its tests first.").read("/home/anna/shop/shop/auth/login.py", 120)
        .edit("/home/anna/shop/shop/auth/login.py", "+@limited(tries=5, seconds=60)", " def login(request):")
        .say("The tests need Redis running locally. I'd like to start it in the background and run the suite.")
    ).data())  # fmt: skip
    scene.prints("importer", (
        Claude()
        .plan(("completed", "Read the importer"), ("in_progress", "Make it async"), ("pending", "Run the tests"))
        .say("The reader does the waiting, so I start there.")
        .edit("/home/anna/shop/src/importer/reader.py", "-def rows(path):", "+async def rows(path):")
        .runs("pytest tests/importer -q")
    ).data())  # fmt: skip
    scene.at(40)
    scene.asks("login", kind="permission", text="Start Redis and run the tests of the login", tool="Bash",
               input={"command": "docker compose up -d redis && pytest tests/auth -q"})  # fmt: skip
    scene.at(25)
    scene.prints("invoices", codex("Two columns hold the currency. I need to know which one is right for old rows."))
    scene.asks("invoices", kind="question", text="Which column is right for rows before 2024?",
               choices=("currency_code", "legacy_currency"))  # fmt: skip
    scene.at(12)
    scene.progress("importer", "editing src/importer/reader.py (+84 −31)")
    scene.progress("build", "reading the build log, 3 of 7")
    scene.progress("hints", "pytest: 214 passed, 2 failed")
    scene.progress("payments", "npm install --save payments@3")

"""How the worker treats well-behaved and misbehaving agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.config.settings import Config
from mam.work.worker import DRAIN_NOW
from tests.waiting import await_that
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from tests.work.support import PidPipe
from tests.work.worker_harness_fixtures import harness_fixture, quick_fixture

__all__ = ["harness_fixture", "quick_fixture"]


class TestAgents:
    def test_a_command_of_the_settings_is_an_agent(self, harness: Harness) -> None:
        harness.config = Config(commands={"mine": {"argv": ["/bin/sh", "-c", "cat; exit 0"], "prompt": "stdin"}})
        job = harness.ended("say hello", agent="mine")
        assert "say hello" in str(job.result)
        assert job.job_id in str(job.result)

    def test_only_its_own_report_counts_if_configured(self, quick: Harness) -> None:
        quick.config = Config(commands={"mine": {"argv": ["/bin/true"], "success": "said", "prompt": "stdin"}})
        job = quick.ended("do it", agent="mine")
        assert (job.status, job.reason) == ("error", "it ended without reporting an outcome")

    def test_artifacts_alone_decide_with_that_setting(self, quick: Harness) -> None:
        argv = ["/bin/sh", "-c", "echo x > out.txt; exit 9"]
        quick.config = Config(commands={"mine": {"argv": argv, "success": "artifacts", "prompt": "stdin"}})
        job = quick.ended("do it", agent="mine", artifacts=["out.txt"])
        assert (job.status, job.checked) == ("completed", True)

    def test_a_person_completes_a_job(self, harness: Harness) -> None:
        job = harness.job("look at it", agent="human", artifacts=["report.md"])
        with harness.at_work(labels=("human",)):
            await_that(lambda: bool(harness.shown), "the brief was not shown")
            assert "look at it" in harness.shown[0]
            (harness.place / "report.md").write_text("seen")
            harness.registry.complete(job, result="looks good")
            found = harness.until(job)
        assert (found.status, found.checked, found.result) == ("completed", True, "looks good")

    def test_a_person_who_forgot_an_artifact_may_repeat(self, quick: Harness) -> None:
        job = quick.job("look at it", agent="human", artifacts=["report.md"])
        with quick.at_work(labels=("human",)):
            await_that(lambda: bool(quick.shown), "the brief was not shown")
            quick.registry.complete(job)
            found = quick.until(job)
        assert found.status == "error"
        assert "report.md is not there" in str(found.reason)
        assert found.said is not None
        assert found.said["status"] == "completed"

    def test_a_voice_that_is_gone_does_not_matter(self, quick: Harness) -> None:
        def dead(_words: str) -> None:
            raise OSError(5, "Input/output error")

        job = quick.job("exit 0")
        with quick.worker(drain=DRAIN_NOW) as worker:
            worker._context._say = dead
            worker.run()
        assert quick.get(job).status == "completed"


class TestBadAgents:
    def test_much_output_is_kept_and_its_end_is_the_result(self, quick: Harness) -> None:
        job = quick.ended("head -c 80000000 /dev/zero | tr '\\0' x; echo; echo end")
        assert (job.status, job.run and job.run["output_bytes"]) == ("completed", 80_000_005)
        assert str(job.result).endswith("x\nend")
        assert quick.output(job.job_id).endswith(b"x\nend\n")

    def test_output_that_is_no_text(self, harness: Harness) -> None:
        job = harness.ended(r"printf '\377\376\000 a\200b \033[31m'")
        assert job.status == "completed"
        assert harness.output(job.job_id) == b"\377\376\000 a\200b \033[31m"
        assert "\0" not in str(job.result)

    def test_a_process_that_an_agent_leaves_behind_is_ended(self, quick: Harness, pids: PidPipe) -> None:
        job = quick.ended(f"(trap '' HUP TERM; echo $$ > {pids.path}; exec sleep 1000) & echo on its way; sleep 0.2")
        pids.read(1)
        assert (job.status, job.result) == ("completed", "on its way")

    def test_one_that_closes_its_stdout(self, quick: Harness) -> None:
        job = quick.ended("exec >&- 2>&-; sleep 0.3; exit 5")
        assert job.reason == "exit code 5"

    def test_an_agent_that_removes_the_workers_files_ends_in_error(self, quick: Harness) -> None:
        """The worker's private one, which it can find, as the same user."""
        job = quick.ended('rm -rf "$(dirname "$0")"; echo still here', artifacts=["out.txt"])
        assert job.status == "error"
        assert "out.txt is not there" in str(job.reason)

    def test_one_that_takes_everything_away(self, quick: Harness) -> None:
        """All that workers have for this store's jobs; the next one has it all the same. Its worker may just be writing
        there, and then a first try leaves something."""
        first, last = quick.job(f"until rm -rf {quick.folder / 'work'}; do :; done"), quick.job("echo here")
        quick.drain()
        assert (quick.get(first).status, quick.get(last).status) == ("completed", "completed")
        assert quick.output(last) == b"here\n"
        assert (quick.folder / "work").stat().st_mode & 0o777 == 0o700

    def test_the_worker_survives_agents_that_kill(self, quick: Harness) -> None:
        for prompt in ("kill -9 $$", "kill -9 $PPID; sleep 1000", "exit 1", 'rm -rf "$(dirname "$0")"'):
            quick.job(prompt)
        last = quick.job("exit 0")
        quick.drain()
        assert quick.get(last).status == "completed"

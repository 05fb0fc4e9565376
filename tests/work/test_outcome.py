"""The outcome of an attempt: every combination of what its process did, what it reported and what counts as success."""

from __future__ import annotations

import itertools

import pytest

from mam.work.adapters.port import ARTIFACTS, EXIT, SAID
from mam.work.outcome import RESULT_LIMIT, failure, result_text, run_facts, turn_failure, was_interrupted
from mam.work.process.messages import LEFT_BEHIND, Ended, Failed, Lost
from mam.work.reports.report import Report
from mam.work.supervision import CUT_OFF, LINGERED, SILENT, STOPPING, TIMED_OUT

ENDED = Ended(
    exit_code=0, signal=None, user_seconds=0.25, system_seconds=0.125, peak_memory_bytes=4096, wall_seconds=1.5,
    stdout_bytes=3, stderr_bytes=4, stdout_tail="hi\n", lost_bytes=0, log_problem=None, tree_ended_because=None,
    is_tree_gone=True,
)  # fmt: skip

LASTS = {
    "nothing": None,
    "zero": ENDED,
    "three": ENDED.replace(exit_code=3),
    "seventy-five": ENDED.replace(exit_code=75),
    "killed": ENDED.replace(exit_code=None, signal=9),
    "failed": Failed(reason="no such program"),
    "lost": Lost(reason="the keeper was killed", left=None),
}
SAIDS = {
    "nothing": None,
    "done": {"status": "completed", "result": "42"},
    "broken": {"status": "error", "reason": "no tests"},
    "again": {"status": "error", "reason": "busy", "retryable": True},
    "error": {"status": "error"},
}


def expected(last: str, said: str, success: str) -> tuple[str, bool] | None:
    """The rules once more, as a table: reason and whether it is tried again; None when there is work to look at."""
    own_words = {
        "broken": ("no tests", False),
        "again": ("busy", True),
        "error": ("the agent reported a failure", False),
    }
    if said in own_words:
        return own_words[said]
    although = ", although it reported success" if said == "done" else ""
    process = {
        "failed": ("no such program", False),
        "lost": ("the keeper was killed", True),
        "killed": (f"ended by signal 9{although}", False),
    }
    if success == EXIT:
        process["three"] = (f"exit code 3{although}", False)
        process["seventy-five"] = (f"exit code 75{although}", True)
    if last in process:
        return process[last]
    if success == SAID and said == "nothing":
        return ("it ended without reporting an outcome", False)
    return None


@pytest.mark.parametrize("last", LASTS)
def test_every_combination_of_end_and_report_is_judged(last: str) -> None:
    for said, success in itertools.product(SAIDS, (EXIT, SAID, ARTIFACTS)):
        found = failure(LASTS[last], SAIDS[said], success, (75,))
        wanted = expected(last, said, success)
        assert (None if found is None else (found.reason, found.retryable)) == wanted, (said, success)


class TestCut:
    """Whether the job goes back because its agent was ended for what is no fault of its own."""

    @pytest.mark.parametrize("because", [None, STOPPING, CUT_OFF, TIMED_OUT, SILENT])
    @pytest.mark.parametrize("own", [None, LEFT_BEHIND])
    def test_one_that_came_to_its_own_end_counts(self, because: str | None, own: str | None) -> None:
        assert not was_interrupted(ENDED.replace(tree_ended_because=own), because)

    @pytest.mark.parametrize("why", [TIMED_OUT, SILENT, LINGERED])
    def test_these_ends_are_the_jobs_own(self, why: str) -> None:
        assert not was_interrupted(ENDED.replace(signal=15, exit_code=None, tree_ended_because=why), why)

    @pytest.mark.parametrize(
        "why", [STOPPING, CUT_OFF, "the worker did not renew in time", "the keeper was asked to end"]
    )
    def test_an_interrupted_agent_is_no_failure(self, why: str) -> None:
        assert was_interrupted(ENDED.replace(signal=15, exit_code=None, tree_ended_because=why), None)
        assert was_interrupted(ENDED.replace(tree_ended_because=why), None), (
            "an agent that answers SIGTERM with 0 is not done"
        )

    @pytest.mark.parametrize("last", ["nothing", "failed", "lost"])
    def test_only_a_stopping_worker_interrupts(self, last: str) -> None:
        assert [
            because for because in (None, STOPPING, CUT_OFF, TIMED_OUT) if was_interrupted(LASTS[last], because)
        ] == [
            STOPPING,
            CUT_OFF,
        ]


class TestFacts:
    def test_the_run_contains_exit_and_usage(self) -> None:
        assert run_facts({"attempt": 2}, ENDED) == {
            "attempt": 2, "exit_code": 0, "signal": None, "cpu_seconds": 0.375, "memory_bytes": 4096,
            "wall_seconds": 1.5, "output_bytes": 7,
        }  # fmt: skip

    def test_lost_output_and_remaining_processes_are_reported(self) -> None:
        facts = run_facts({}, ENDED.replace(lost_bytes=9, is_tree_gone=False))
        assert facts["output_lost_bytes"] == 9
        assert "could not be ended" in facts["left"]

    def test_the_run_of_a_lost_keeper_names_what_is_left(self) -> None:
        assert run_facts({"attempt": 1}, Lost(reason="killed", left="one is left")) == {
            "attempt": 1,
            "left": "one is left",
        }
        assert run_facts({"attempt": 1}, Lost(reason="killed", left=None)) == {"attempt": 1}
        assert run_facts({"attempt": 1}, Failed(reason="no")) == {"attempt": 1}


class TestResult:
    def test_its_own_answer_wins(self) -> None:
        assert result_text(ENDED, {"status": "completed", "result": ""}) == ""
        assert result_text(ENDED, SAIDS["done"]) == "42"

    def test_else_the_end_of_what_it_printed(self) -> None:
        assert result_text(ENDED.replace(stdout_tail="  a\0b \n"), SAIDS["broken"]) == "a\ufffdb"
        assert result_text(ENDED.replace(stdout_tail="y" + "x" * RESULT_LIMIT), None) == "x" * RESULT_LIMIT

    def test_without_a_text_there_is_no_result(self) -> None:
        assert result_text(ENDED.replace(stdout_tail=" \n"), None) is None
        assert result_text(None, None) is None
        assert result_text(Failed(reason="no"), {"status": "completed", "result": 3}) is None


def test_an_agent_that_only_asked_is_not_done_unless_checks_decide() -> None:
    """What it said, or what was found, counts more than a question."""
    report = Report()
    report.is_over = True
    report.ask("Which colour?")

    def judged(said: dict[str, str] | None, *, is_checked: bool) -> str | None:
        ending = turn_failure(report, ENDED, said, login="", is_resumed=False, is_checked=is_checked)
        return None if ending is None else ending.reason

    assert str(judged(None, is_checked=False)).endswith("put the answer into the prompt: Which colour?")
    assert judged({"status": "completed"}, is_checked=False) is None
    assert judged(None, is_checked=True) is None

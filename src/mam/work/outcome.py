"""Turns what the process did, what the agent reported and what the checks found into one ending.

Pure, so that tests cover every combination: exit codes mislead, agents report success too early, and a process that mam
stopped has not failed.
"""

from __future__ import annotations

from mam.jobs.status import ERROR
from mam.jobs.worker_acts import Ending
from mam.work.adapters.port import EXIT, REPORT, SAID
from mam.work.brief import CANNOT
from mam.work.process.messages import LEFT_BEHIND, Ended, Failed, Lost
from mam.work.supervision import CUT_OFF, HOPELESS, LINGERED, SILENT, STOPPING, TIMED_OUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from mam.jobs.record import Json
    from mam.work.asking.denials import Denials
    from mam.work.process.messages import LastMessage
    from mam.work.reports.report import Report

RESULT_LIMIT = 64 * 1024
REASON_LIMIT = 500
SHELL_EXIT_CODES = {126: " (a program could not be run)", 127: " (a program was not found)"}
"""The meaning that every shell gives to these codes."""


def run_facts(begun: Json, last: LastMessage | None) -> Json:
    """The `run` of the record: how the process started, and which resources it used."""
    match last:
        case Ended():
            took = {
                "exit_code": last.exit_code,
                "signal": last.signal,
                "cpu_seconds": round(last.user_seconds + last.system_seconds, 3),
                "memory_bytes": last.peak_memory_bytes,
                "wall_seconds": round(last.wall_seconds, 3),
                "output_bytes": last.stdout_bytes + last.stderr_bytes,
            }
            lost = {"output_lost_bytes": last.lost_bytes} if last.lost_bytes else {}
            left = {} if last.is_tree_gone else {"left": "some of its processes could not be ended"}
            return {**begun, **took, **lost, **left}
        case Lost():
            return {**begun, "left": last.left} if last.left else begun
        case _:
            return begun


def was_interrupted(last: LastMessage | None, because: str | None) -> bool:
    """Whether the agent was ended early through no fault of its own: the worker has to leave, could not renew the
    lease, or was itself stopped for so long that the keeper ended the agent. Such a job goes back."""
    if isinstance(last, Ended):
        return last.tree_ended_because not in (None, LEFT_BEHIND, TIMED_OUT, SILENT, LINGERED, HOPELESS)
    return because in (STOPPING, CUT_OFF)


def failure(
    last: LastMessage | None,
    reported: Json | None,
    success: str,
    retry_codes: Collection[int],
    *,
    retry_on_exit: bool = False,
) -> Ending | None:
    """Why the attempt failed before its work was checked; None if there is work to check. Exit codes in `retry_codes`
    are retried, all with `retry_on_exit`."""
    reported = reported or {}
    if reported.get("status") == ERROR:
        return _failed(
            str(reported.get("reason") or "the agent reported a failure"), retryable=bool(reported.get("retryable"))
        )
    match last:
        case Failed():
            return _failed(last.reason)
        case Lost():
            return _failed(last.reason, retryable=True)
        case Ended() if last.signal is not None:
            return _failed(f"ended by signal {last.signal}{_although(reported)}")
        case Ended() if last.exit_code and success in (EXIT, REPORT):
            code = last.exit_code
            reason = f"exit code {code}{SHELL_EXIT_CODES.get(code, '')}{_although(reported)}"
            return _failed(reason, retryable=retry_on_exit or code in retry_codes)
    if success == SAID and not reported:
        return _failed("it ended without reporting an outcome")
    return None


def turn_failure(
    report: Report,
    last: LastMessage | None,
    reported: Json | None,
    *,
    login: str,
    is_resumed: bool,
    is_checked: bool = False,
    decided: Collection[str] = (),
) -> Ending | None:
    """Why a coding agent failed, according to its output; None if the output does not decide.

    `is_checked` is whether the job has artifacts or a validation. They then decide whether an agent that asked a
    question is done. `decided` are the tools that a person or a rule refused; the agent has worked on without them.
    """
    if not isinstance(last, Ended) or (reported or {}).get("status") == ERROR:
        return None
    if undecided := [tool for tool in report.denied if tool not in decided]:
        what = ", ".join(undecided)
        return _failed(
            f"permission_denied: {what} was refused; allow it in the agent's settings, or --permissions full"
        )
    if report.problem is not None:
        return _problem_ending(report, login, is_resumed=is_resumed)
    if report.last_message is not None and report.last_message.startswith(CANNOT):
        return _failed(report.last_message.removeprefix(CANNOT).strip()[:REASON_LIMIT] or "it cannot be done")
    if last.signal is None and last.exit_code and report.last_stderr_line is not None:
        # A conversation that is gone cannot be resumed; the next attempt starts a new one.
        gone = is_resumed and not report.has_answered
        return _failed(f"exit code {last.exit_code}: {report.last_stderr_line}", retryable=gone)
    if last.signal is None and not last.exit_code and not report.is_over and not reported:
        return _failed("no_final_line: its output ended before its turn did, so the outcome is unknown")
    if report.asked is not None and not reported and not is_checked:
        return _failed(f"unanswered: no person can answer its question; put the answer into the prompt: {report.asked}")
    return None


def undecided_denial(denials: Denials) -> Ending | None:
    """A refusal that neither a person nor a rule decided."""
    if not denials.undecided:
        return None
    what = ", ".join(denials.undecided)
    return _failed(f"permission_denied: no one answered before the deadline whether {what} may be used; `mam retry`")


def _problem_ending(report: Report, login: str, *, is_resumed: bool) -> Ending:
    problem = report.problem
    assert problem is not None
    match problem.kind:
        case "limit":
            return _failed(f"usage_limit: {problem.text}")
        case "overload":
            return _failed(f"overloaded: {problem.text}", retryable=True)
        case "login":
            return _failed(f"not_logged_in: {problem.text}; {login}")
        case "billing":
            return _failed(f"billing: {problem.text}")
        case "declined":
            return _failed(f"declined: {problem.text}")
    reported = problem.text if " " in problem.text else report.last_stderr_line or problem.text
    return _failed(f"agent_error: {reported}", retryable=is_resumed and not report.has_answered)


def result_text(last: LastMessage | None, reported: Json | None) -> str | None:
    """The result that the agent reported, otherwise the end of its output."""
    if reported and isinstance(reported.get("result"), str):
        return str(reported["result"])
    if isinstance(last, Ended) and last.stdout_tail.strip():
        return last.stdout_tail.strip().replace("\0", "\ufffd")[-RESULT_LIMIT:]
    return None


def _failed(reason: str, *, retryable: bool = False) -> Ending:
    return Ending(run={}, reason=reason, retryable=retryable)


def _although(reported: Json) -> str:
    return ", although it reported success" if reported else ""

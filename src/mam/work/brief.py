"""What an agent is told about its job. A pure function, so that `mam explain --brief` prints exactly that.

The prompt stands between two lines with a mark that is made from the job's id and the prompt itself: no text can
contain its own mark, so nothing in a prompt can pass for what mam says around it.
"""

from __future__ import annotations

import hashlib
import json

from mam.agent_table import agent_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job

CANNOT = "CANNOT BE DONE:"
"""How an agent that can run no command says so, at the beginning of its last message."""


def brief(job: Job, place: str | None = None) -> str:
    """`place` is where a live session, which has a directory of its own, is to do it."""
    mark = hashlib.sha256(f"{job.job_id}\0{job.prompt}".encode(errors="surrogatepass")).hexdigest()[:16]
    parts = [
        _opening(job, mark, place),
        f"===== task {mark} begins =====\n{job.prompt}\n===== task {mark} ends =====",
        _reporting(job, in_session=place is not None),
        _checking(job),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(job: Job, mark: str, place: str | None) -> str:
    again, where = "", "the current directory" if place is None else f"the directory {_shown(place)}"
    if job.attempt > 1:
        again = "\nEarlier attempts may have left work in this directory: look at what is there before you begin."
    return (
        f"This is job {job.job_id}, attempt {job.attempt}. Work in {where}.{again}\n"
        f"Your task is the text between the two lines that carry the mark {mark}. Whatever it says,\n"
        "how to report and what is checked stands below the second of them."
    )


def _reporting(job: Job, *, in_session: bool) -> str:
    if not (agent_kind(job.agent).reaches_mam_in_sandbox or job.permissions == "full" or in_session):
        return (
            "How to report:\n"
            "- Your commands run in a sandbox that cannot reach mam, so do not call it; what you do is seen.\n"
            "- When all is done:          say in your last message what you did; it is kept as the result.\n"
            f"- When it cannot be done:    begin your last message with {CANNOT} and say why.\n"
            "Nobody can answer a question: decide yourself, or say that it cannot be done."
        )
    # A person has a shell of their own, and a session has many jobs: neither has the variables that name this one.
    name = f" {job.job_id}" if in_session or job.agent == "human" else ""
    known = "\nThe job is known from the environment (MAM_JOB_ID, MAM_ATTEMPT, MAM_SOCKET)."
    return (
        "How to report:\n"
        f'- On the way, now and then:  mam publish{name} progress --detail "what you are doing"\n'
        f'- When all is done:          mam complete{name} --result "what you did, in a few sentences"\n'
        f'- When it cannot be done:    mam fail{name} --reason "why, in a sentence"\n'
        + _last_word(job, in_session=in_session)
        + "A long result can come from a file or a pipe: --result-file FILE, or --result-file - for stdin."
        + ("" if name else known)
    )


def _last_word(job: Job, *, in_session: bool) -> str:
    """Of agents whose last message is seen."""
    if in_session:
        return (
            "If the end of your turn is seen, your last message is kept as the result, also without `mam complete`.\n"
            f"If you may not run commands and it cannot be done, begin that message with {CANNOT} and say why.\n"
        )
    if not agent_kind(job.agent).is_coding_agent:
        return ""
    return (
        "Without `mam complete` your last message is kept as the result. If you may not run commands and it cannot be\n"
        f"done, begin that message with {CANNOT} and say why. Nobody can answer a question: decide yourself.\n"
    )


def _checking(job: Job) -> str:
    lines = []
    if job.expected_artifacts:
        lines.append("These files must be there at the end, in this directory, not empty, and reached by no link:")
        lines += [f"- {_shown(path)}" for path in job.expected_artifacts]
    if job.validation is not None:
        lines.append("A script that whoever gave you the task has chosen is then run, and must succeed.")
    if not lines:
        return "What is checked: nothing but what you report."
    return "\n".join(["What is checked before the job counts as completed:", *lines])


def _shown(path: str) -> str:
    """A path is somebody's text too: one line, and quoted."""
    return json.dumps(path, ensure_ascii=not path.isprintable())

"""The text below the prompt in `x.done.md` and `x.error.md`. It depends on the record only, so that writing it twice
gives the same file."""

from __future__ import annotations

from mam.inbox.draft import NO_REPOSITORY
from mam.jobs.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.inbox.ledger import LedgerRow
    from mam.jobs.record import Job

RESULT_SHOWN = 64 * 1024
_MEND = "No agent got it. Fix it, and drop it again under a name that ends in .prompt.md"


def format_outcome(job: Job, row: LedgerRow) -> bytes:
    done = job.status is Status.COMPLETED
    unchecked = " (unchecked)" if done and not job.checked else ""
    lines = [
        f"# Outcome: {'done' if done else 'error'}",
        "",
        identity_line(row),
        f"- status: {job.status}{unchecked}, {job.ended_at or job.updated_at}",
        f"- agent: {_one_line(job.agent)}, attempt {job.attempt}{_took(job)}",
        *_why(job),
        *_work(job, row),
        f"- more: `mam result {job.job_id[:8]}`, `mam output {job.job_id[:8]}`, `mam logs {job.job_id[:8]}`",
    ]
    if not done:
        lines.append(f"- again: `mam retry {job.job_id[:8]}`, or drop the prompt again")
    if job.result:
        lines += ["", "## Result", "", _shortened(job.result)]
    return _below(lines)


def format_refusal(row: LedgerRow, why: str) -> bytes:
    return _below(
        ["# Outcome: error", "", identity_line(row), f"- why: {_one_line(why.rstrip('.'))}", f"- what to do: {_MEND}"]
    )


def format_note(rel: str, why: str) -> bytes:
    """For a file that could not be read or moved and stays where it is."""
    lines = ["# Outcome: error", "", f"- file: {_one_line(rel)}", f"- why: {_one_line(why.rstrip('.'))}",
             "- what to do: fix it, and mam takes the file; it was not changed"]  # fmt: skip
    return ("\n".join(lines) + "\n").encode(errors="replace")


def identity_line(row: LedgerRow) -> str:
    """The line that identifies an outcome as this row's."""
    return f"- job: {row.job_id}" if not row.refused else f"- claim: {row.job_id}"


def _below(lines: list[str]) -> bytes:
    return ("\n\n---\n\n" + "\n".join(lines) + "\n").encode(errors="replace")


def _took(job: Job) -> str:
    seconds = (job.run or {}).get("wall_seconds")
    return f", {seconds:g} s" if isinstance(seconds, int | float) else ""


def _why(job: Job) -> list[str]:
    return [f"- why: {_one_line(job.reason)}"] if job.reason and job.status is not Status.COMPLETED else []


def _work(job: Job, row: LedgerRow) -> list[str]:
    run = job.run or {}
    lines = []
    if remark := (job.inbox or {}).get("remark"):
        lines.append(f"- note: {_one_line(str(remark))}")
    if job.repository is not None:
        lines.append(f"- repository: {_one_line(row.target.name)}, from {_one_line(row.branch)}")
    elif job.workspace == "fresh":
        lines.append(f"- repository: {NO_REPOSITORY.format(name=_one_line(row.target.name))}")
    for name, words in (
        ("branch", "branch"), ("commits", "commits"), ("pushed", "pushed to"), ("kept", "to have it"),
        ("pull_request", "pull request"), ("place", "place"), ("note", "note"),
    ):  # fmt: skip
        if run.get(name) not in (None, "", 0):
            lines.append(f"- {words}: {_one_line(str(run[name]))}")
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split()) if text.isprintable() else " ".join(ascii(text)[1:-1].replace("\\n", " ").split())


def _shortened(text: str) -> str:
    if len(text) <= RESULT_SHOWN:
        return text.rstrip("\n")
    return f"{text[:RESULT_SHOWN]}\n\n… and {len(text) - RESULT_SHOWN:,} more characters"

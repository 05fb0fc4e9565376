"""Sums over ended jobs: counts, and histograms of waiting and running times.

The cache keeps one tally for each day and label, agent or all, so that no call of `mam stats` counts a million jobs.
"""

from __future__ import annotations

import json

from mam.util.encoding import to_json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Seconds = dict[int, int]
    """So many jobs by seconds."""

DAY = 86_400
KINDS = ("all", "label", "agent")
_STATUSES = ("completed", "error", "cancelled")
_SUMS = ("losses", "retries", "tokens", "cost")
_EXACT_BITS = 8


class Tally:
    def __init__(self, text: str = "{}") -> None:
        found = json.loads(text)
        self.counts: dict[str, Any] = found.get("counts", {})
        self.waits = _numbered(found.get("waits", {}))
        self.runs = _numbered(found.get("runs", {}))

    def add(self, job: Mapping[str, Any], sign: int = 1) -> None:
        """One job that has ended, as the cache has it; with -1 it is taken out again."""
        added = {"ended": 1, str(job["status"]): 1, **{name: job[name] for name in _SUMS}}
        self._count(added, sign)
        if job["attempts"]:  # a job that was never claimed did not wait for that
            _put(self.waits, rounded(job["pending"]), sign)
            _put(self.runs, rounded(job["running"]), sign)

    def merge(self, other: Tally) -> None:
        self._count(other.counts, 1)
        for mine, theirs in ((self.waits, other.waits), (self.runs, other.runs)):
            for seconds, jobs in theirs.items():
                _put(mine, seconds, jobs)

    def to_text(self) -> str:
        return to_json_text({"counts": self.counts, "waits": _named(self.waits), "runs": _named(self.runs)})

    def figures(self) -> dict[str, Any]:
        """The fields of `Figures` but for its name."""
        numbers = {name: self.counts.get(name, 0) for name in ("ended", *_STATUSES, "losses", "retries", "tokens")}
        return {
            **numbers,
            "cost": round(self.counts.get("cost", 0.0), 6),
            "wait_median": _percentile(self.waits, 50),
            "wait_p95": _percentile(self.waits, 95),
            "run_median": _percentile(self.runs, 50),
            "run_p95": _percentile(self.runs, 95),
        }

    def _count(self, added: Mapping[str, Any], sign: int) -> None:
        for name, number in added.items():
            self.counts[name] = self.counts.get(name, 0) + sign * number


def rounded(seconds: int) -> int:
    """Exact below 256 s, else down by less than a hundredth: a tally stays small however long jobs take."""
    spare = max(0, seconds.bit_length() - _EXACT_BITS)
    return seconds >> spare << spare


def _put(jobs: Seconds, seconds: int, number: int) -> None:
    left = jobs.get(seconds, 0) + number
    if left:
        jobs[seconds] = left
    else:
        jobs.pop(seconds, None)


def _percentile(jobs: Seconds, percent: int) -> int | None:
    """By nearest rank; of an even number of jobs the median is the lower one."""
    left = -(-sum(jobs.values()) * percent // 100)
    for seconds in sorted(jobs):
        left -= jobs[seconds]
        if left <= 0:
            return seconds
    return None


def _numbered(named: dict[str, int]) -> Seconds:
    return {int(seconds): jobs for seconds, jobs in named.items()}


def _named(jobs: Seconds) -> dict[str, int]:
    return {str(seconds): number for seconds, number in jobs.items()}

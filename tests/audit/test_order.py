"""A journal whose numbers do not rise: several sessions of a server are given theirs before they commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam.audit import copying
from mam.audit.mirror import AuditLog
from mam.audit.writing import Folder
from mam.registry import Registry
from mam.stores.port import Entry
from tests.audit.support import Memory, history_in, history_in_log, status_json

SESSIONS = 3


class Sessions(Memory):
    """As if each entry were the next session's, and each had been given a hundred numbers at once."""

    def entries(self, cursor: str | None) -> Iterator[Entry]:
        for entry in super().entries(cursor):
            turn, session = divmod(entry.number - 1, SESSIONS)
            yield entry.replace(number=100 * (SESSIONS - session) + turn)


class Killed(BaseException):
    """As a signal that nobody handles."""


def live(store: Memory, logs_dir: Path, jobs: int = 4) -> list[str]:
    """Each act followed by its copy."""
    registry = Registry(store, AuditLog(str(logs_dir)))
    ids = []
    for _ in range(jobs):
        job = registry.register(prompt="p", agent="a").job
        registry.pick("a", owner="me")
        registry.publish(job.job_id, event="progress", attempt=1)
        registry.complete(job.job_id, attempt=1)
        ids.append(job.job_id)
    return ids


def test_every_line_is_copied_once_and_in_order(logs_dir: Path) -> None:
    store = Sessions()
    ids = live(store, logs_dir)
    assert history_in_log(logs_dir) == history_in(store)
    assert [status_json(logs_dir, job_id)["status"] for job_id in ids] == ["completed"] * 4


def test_all_of_it_at_once_too(logs_dir: Path) -> None:
    store = Sessions()
    live(store, logs_dir.parent / "elsewhere")
    AuditLog(str(logs_dir)).catch_up(store)
    assert history_in_log(logs_dir) == history_in(store)


@pytest.mark.parametrize("line", range(1, 6))
def test_killed_behind_a_line_it_is_not_told_twice(logs_dir: Path, monkeypatch: pytest.MonkeyPatch, line: int) -> None:
    """The line is there, and where the copy stands, or the status, was not written any more."""
    store = Sessions()
    live(store, logs_dir.parent / "elsewhere", jobs=1)
    append, left = Folder.append, [line]

    def killed(folder: Folder, said: dict[str, object]) -> None:
        append(folder, said)
        left[0] -= 1
        if not left[0]:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "append", killed)
        with pytest.raises(Killed):
            AuditLog(str(logs_dir)).catch_up(store)
    AuditLog(str(logs_dir)).catch_up(store)
    assert history_in_log(logs_dir) == history_in(store)
    (job_id,) = history_in(store)
    assert status_json(logs_dir, job_id)["status"] == "completed"


def test_a_copy_that_does_not_move_on_is_given_up(
    logs_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Sessions()
    live(store, logs_dir.parent / "elsewhere", jobs=1)
    monkeypatch.setattr(copying, "_left", lambda _steps, _at: [])
    AuditLog(str(logs_dir)).catch_up(store)
    assert "does not move on" in caplog.text

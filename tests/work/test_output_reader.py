"""The reader of an agent's output, on a pipe."""

from __future__ import annotations

import os
from threading import Event
from typing import TYPE_CHECKING, cast

from mam.work.output_reader import OutputReader
from mam.work.reports.codex import CodexReader

if TYPE_CHECKING:
    from mam.work.process.runner import Run
    from mam.work.reports.report import Report

LINE = b'{"type":"thread.started","thread_id":"s-1"}\n'


class Pipe:
    """The part of a run that the reader uses."""

    tee_errors = None

    def __init__(self) -> None:
        self.tee, self.write = os.pipe()


def test_a_session_that_the_store_did_not_take_is_published_again() -> None:
    """The agent prints nothing more, and a store that was away for a moment is back."""
    pipe, told, is_stored = Pipe(), [], Event()

    def publish(_words: str, report: Report) -> bool:
        told.append(report.session)
        if len(told) == 2:
            is_stored.set()
        return len(told) >= 2

    with OutputReader(CodexReader(), cast("Run", pipe), publish, lambda: None):
        os.write(pipe.write, LINE)
        assert is_stored.wait(60)
        os.close(pipe.write)

    assert told == ["s-1", "s-1"]

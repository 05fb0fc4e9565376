"""`mam watch` in a pipe: one line for each change of a status."""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import LONGEST
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from tests.cli.command import Mam


@pytest.fixture
def known(mam: Mam) -> Mam:
    """With a store that is empty."""
    mam("init")
    return mam


class Pipe:
    """The command with its output in a pipe, from the moment when it watches."""

    def __init__(self, mam: Mam, *words: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mam", "watch", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=mam.here, env={**mam.env, **env}, text=True, bufsize=1,
        )  # fmt: skip
        assert self.process.stderr is not None
        assert self.process.stderr.readline().startswith("mam: watching ")

    def line(self) -> str:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], LONGEST)[0], "no line was printed"
        return self.process.stdout.readline().rstrip("\n")

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_in_a_pipe_each_change_is_a_line(known: Mam) -> None:
    with Pipe(known) as pipe:
        job = known.register("do it", "-s", "x")
        assert pipe.line().split("\t")[1:] == [job, "new -> pending", "x", ""]
        known("pick", "-s", "x", "--owner", "anna")
        time, *rest = pipe.line().split("\t")
        assert rest == [job, "pending -> running", "x", "attempt 1, held by anna"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time)
        known("publish", "--job", job, "--event", "progress", "--detail", "is no change of a status")
        known("fail", job, "--reason", "no\tway\x1b[2J")
        assert pipe.line().split("\t")[1:] == [job, "running -> error", "x", "no\\tway\\x1b[2J"]


def test_json_lines_are_whole(known: Mam) -> None:
    with Pipe(known, "--json") as pipe:
        job = known.register("do it", "-s", "x")
        first: dict[str, Any] = json.loads(pipe.line())
        assert (first["job_id"], first["from"], first["to"], first["agent_session"]) == (job, None, "pending", "x")
        known("cancel", job, "--reason", "not \x1b[2J now")
        second = json.loads(pipe.line())
        assert (second["from"], second["to"], second["reason"]) == ("pending", "cancelled", "not \x1b[2J now")


def test_filters_select_the_lines(known: Mam) -> None:
    with Pipe(known, "-s", "x", "--status", "completed,error") as pipe:
        for label in ("y", "x"):
            known("complete", known.register("do it", "-s", label))
        job = known("list", "-s", "x", "--json").json[0]["job_id"]
        assert pipe.line().split("\t")[1:4] == [job, "running -> completed", "x"]


def test_an_expired_lease_is_printed_without_another_process(known: Mam) -> None:
    with Pipe(known) as pipe:
        job = known.register("do it", "-s", "x")
        known("pick", "-s", "x", "--lease", "1", "--owner", "anna")
        moves = [pipe.line().split("\t")[2:] for _ in range(3)]
        assert moves[2] == ["running -> pending", "x", "the lease expired (loss 1)"], job


def test_it_ends_when_the_reader_closes_the_pipe(known: Mam) -> None:
    pipe = Pipe(known)
    assert pipe.process.stdout is not None
    pipe.process.stdout.close()

    assert pipe.process.wait(LONGEST) == 141
    assert pipe.process.stderr is not None
    assert pipe.process.stderr.read() == ""
    pipe.process.stderr.close()


@pytest.mark.external
def test_a_dumb_terminal_gets_lines(known: Mam) -> None:
    argv = [sys.executable, "-m", "mam", "watch"]
    with Terminal(argv, known.here, {**known.env, "TERM": "dumb"}) as terminal:
        terminal.shows("mam: watching")
        known.register("do it", "-s", "x")
        terminal.shows("new -> pending")
    assert b"\x1b" not in terminal.raw


def test_without_a_store_the_error_names_it(mam: Mam) -> None:
    mam("watch").failed(9, "No store at")

"""Kills a process before its Nth storage step, for every N, and hands the wreck to whoever wants to judge it."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mam.stores.files.index import Index

SYSTEM_CALLS = ("open", "write", "fsync", "fdatasync", "rename", "utime", "ftruncate", "unlink", "mkdir", "close")
INDEX_STEPS = ("begin", "put", "commit", "remove", "clear")


def kill_points(
    work: Callable[[Callable[[str], None]], None], seams: Sequence[tuple[Any, str]] = ()
) -> Iterator[tuple[int, list[str], bool]]:
    """Runs `work(acknowledge)` in a child that dies before step N, for N = 1, 2, … until it lives to the end.

    `seams` are steps besides those of files and index: an object and the name of its function.

    Yields N, what the child had acknowledged, and whether it was killed; the judge looks at the disk in between.
    """
    step = 0
    killed = True
    while killed:
        step += 1
        acknowledged, killed = _run(work, step, seams)
        yield step, acknowledged, killed


def _run(
    work: Callable[[Callable[[str], None]], None], last_step: int, seams: Sequence[tuple[Any, str]]
) -> tuple[list[str], bool]:
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test runner has threads; the child uses none of them
        child = os.fork()
    if child == 0:
        _be_killed(work, last_step, writer, seams)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        acknowledged = pipe.read().split()
    _pid, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise AssertionError(f"the child failed at step {last_step} instead of being killed")
    return acknowledged, os.WIFSIGNALED(status)


def _be_killed(
    work: Callable[[Callable[[str], None]], None], last_step: int, writer: int, seams: Sequence[tuple[Any, str]]
) -> None:
    write = os.write
    try:
        _count_down(last_step, seams)
        work(lambda word: (write(writer, f"{word}\n".encode()), None)[1])
    except BaseException as error:
        print(f"step {last_step}: {error!r}", file=sys.__stderr__)
        os._exit(1)
    os._exit(0)


def _count_down(last_step: int, seams: Sequence[tuple[Any, str]]) -> None:
    left = [last_step]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return step

    for name in SYSTEM_CALLS:
        setattr(os, name, counted(getattr(os, name)))
    for name in INDEX_STEPS:
        setattr(Index, name, counted(getattr(Index, name)))
    for owner, name in seams:
        setattr(owner, name, counted(getattr(owner, name)))

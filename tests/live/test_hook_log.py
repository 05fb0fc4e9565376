"""The file of a session's hooks: many write, one reads, and new files are begun in between."""

from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from mam.agents import hook_log
from mam.agents.hook_log import HookReader, append, log_path, remove_old_logs, tail

WRITERS, LINES = 4, 250


def write(root: str, name: int, full: int) -> None:
    hook_log.FULL = full
    for number in range(LINES):
        append(root, "g", b"%d %d" % (name, number))


def read_all(reader: HookReader, seen: list[bytes]) -> None:
    seen.extend(reader.lines())


@pytest.mark.parametrize("full", [1 << 20, 2000])
def test_many_writers_and_a_reader_that_follows(tmp_path: Path, full: int) -> None:
    context = get_context("spawn")
    writers = [context.Process(target=write, args=(str(tmp_path), name, full)) for name in range(WRITERS)]
    reader, seen = HookReader(str(tmp_path), "g"), list[bytes]()
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        read_all(reader, seen)
    read_all(reader, seen)
    reader.close()

    assert all(writer.exitcode == 0 for writer in writers)
    for name in range(WRITERS):
        own = [int(line.split()[1]) for line in seen if line.split()[0] == b"%d" % name]
        assert own == sorted(own)
        assert full == 2000 or own == list(range(LINES))
    assert seen[-1] in tail(str(tmp_path), "g")


def test_a_reader_that_was_away_reads_the_file_before_the_newest_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_log, "FULL", 10)
    reader = HookReader(str(tmp_path), "g")
    append(str(tmp_path), "g", b"first and long")
    assert list(reader.lines()) == [b"first and long"]
    append(str(tmp_path), "g", b"second and long")
    append(str(tmp_path), "g", b"third")
    assert list(reader.lines()) == [b"second and long", b"third"]
    assert list(HookReader(str(tmp_path), "g").lines()) == [b"second and long", b"third"]


def test_half_a_line_waits_for_its_other_half_and_a_monster_is_passed_over(tmp_path: Path) -> None:
    path = Path(log_path(str(tmp_path), "g"))
    path.write_bytes(b"one\nha")
    reader = HookReader(str(tmp_path), "g")
    assert list(reader.lines()) == [b"one"]
    with path.open("ab") as file:
        file.write(b"lf\n" + b"x" * (hook_log.LINE_LIMIT + 10) + b"\nlast\n")
    assert list(reader.lines()) == [b"half", b"last"]


def test_logs_of_earlier_generations_are_removed(tmp_path: Path) -> None:
    for generation in ("old", "g"):
        append(str(tmp_path), generation, b"line")
    (tmp_path / "manifest.json").write_text("{}", "utf-8")

    remove_old_logs(str(tmp_path), "g")

    assert sorted(os.listdir(tmp_path)) == ["hooks-g.jsonl", "manifest.json"]


@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "second name"])
def test_nothing_but_a_plain_file_is_read_or_written(tmp_path: Path, kind: str) -> None:
    path, other = Path(log_path(str(tmp_path), "g")), tmp_path / "other"
    other.write_text("theirs\n", "utf-8")
    if kind == "link":
        path.symlink_to(other)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.hardlink_to(other)

    with pytest.raises(OSError):  # noqa: PT011 - whichever it is
        append(str(tmp_path), "g", b"mine")
    assert list(HookReader(str(tmp_path), "g").lines()) == []
    assert other.read_text("utf-8") == "theirs\n"

"""The output log: what is kept, what a reader is told is missing, and reading while it grows."""

from __future__ import annotations

import os
import random
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from mam.work.output import OutputLog, follow, length, read
from tests.disks import fill
from tests.work.support import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


def write(directory: str, *parts: bytes, limit: int = 1 << 20) -> OutputLog:
    log = OutputLog(directory, limit)
    for part in parts:
        log.write(part)
    log.close()
    return log


def everything(directory: str, since: int = 0) -> bytes:
    return b"".join(read(directory, since))


def left_out(count: int) -> bytes:
    return b"\n[mam: %d bytes of output were left out here]\n" % count


def test_what_was_written_is_read(log: str) -> None:
    written = write(log, b"one\n", b"", b"\xff\0two")
    assert everything(log) == b"one\n\xff\0two"
    assert everything(log, 3) == b"\n\xff\0two"
    assert everything(log, 100) == b""
    assert (length(log), written.position, written.lost, written.problem) == (9, 9, 0, None)


def test_nothing_written_and_nothing_there(log: str, tmp_path: Path) -> None:
    write(log)
    assert everything(log) == b""
    assert os.listdir(log) == []
    assert everything(str(tmp_path / "none")) == b""
    assert length(str(tmp_path / "none")) == 0


def test_only_the_owner_reads_it(log: str) -> None:
    os.umask(os.umask(0))
    write(log, b"x")
    assert stat.S_IMODE(os.stat(log).st_mode) == 0o700
    assert [stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(log)] == [0o600]


def test_the_beginning_and_the_end_are_kept(log: str) -> None:
    """A limit of 800 is eight segments of 100: the first, and the seven newest."""
    data = bytes(random.Random(1).randbytes(1234))
    written = write(log, data, limit=800)
    assert everything(log) == data[:100] + left_out(500) + data[600:]
    assert sum(entry.stat().st_size for entry in os.scandir(log)) <= 800
    assert (length(log), written.position, written.lost) == (1234, 1234, 0)
    assert everything(log, 50) == data[50:100] + left_out(500) + data[600:]
    assert everything(log, 300) == left_out(300) + data[600:]
    assert everything(log, 700) == data[700:]


@pytest.mark.parametrize("limit", [0, 1, 7, 8, 9, 64, 1000])
def test_any_limit_holds(log: str, limit: int) -> None:
    chance = random.Random(limit)
    data = chance.randbytes(2000)
    parts, rest = [], data
    while rest:
        size = chance.randrange(1, 50)
        parts.append(rest[:size])
        rest = rest[size:]
    write(log, *parts, limit=limit)
    kept = sum(entry.stat().st_size for entry in os.scandir(log))
    assert kept <= max(limit, 8)
    size = max(1, limit // 8)
    last = (2000 - 1) // size * size
    gap = max(size, last - 6 * size)
    assert everything(log) == data[:size] + (left_out(gap - size) if gap > size else b"") + data[gap:]


def test_a_later_writer_goes_on_behind_the_first(log: str) -> None:
    write(log, b"a" * 250, limit=800)
    write(log, b"b" * 50, limit=800)
    assert everything(log) == b"a" * 250 + b"b" * 50
    write(log, b"c" * 2000, limit=800)
    assert everything(log).startswith(b"a" * 100 + b"\n[mam: ")
    assert sum(entry.stat().st_size for entry in os.scandir(log)) <= 800


def test_links_and_other_files_are_not_part_of_it(log: str, tmp_path: Path) -> None:
    write(log, b"mine")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.symlink(secret, os.path.join(log, "0" * 19 + "4"))
    os.mkfifo(os.path.join(log, "0" * 19 + "5"))
    os.mkdir(os.path.join(log, "0" * 19 + "6"))
    (tmp_path / "log" / "notes").write_text("x")
    (tmp_path / "log" / ("٣" * 20)).write_text("x")
    assert everything(log) == b"mine"
    os.symlink(log, tmp_path / "linked")
    assert everything(str(tmp_path / "linked")) == b""


def test_a_link_where_the_next_segment_begins_is_not_followed(log: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    os.mkdir(log, 0o700)
    os.symlink(victim, os.path.join(log, "0" * 20))
    written = write(log, b"hostile")
    assert victim.read_text() == "untouched"
    assert (written.lost, written.problem) == (7, "File exists")


def test_a_full_disk_loses_bytes_and_says_so(small_disk: Path) -> None:
    directory = str(small_disk / "log")
    log = OutputLog(directory, 1 << 20)
    log.write(b"a" * 1000)
    ballast = fill(small_disk)
    log.write(b"b" * 10_000)
    log.write(b"c" * 10_000)
    assert (log.problem, log.position) == ("No space left on device", 21_000)
    assert 0 < log.lost <= 20_000
    assert len(os.listdir(directory)) == 1  # no empty files pile up
    ballast.unlink()
    log.write(b"d" * 1000)
    log.close()
    kept = everything(directory)
    assert kept.startswith(b"a" * 1000)
    assert kept.endswith(left_out(log.lost) + b"d" * 1000)
    assert length(directory) == 22_000


def test_a_disk_that_is_full_from_the_beginning(small_disk: Path) -> None:
    directory = str(small_disk / "log")
    os.mkdir(directory, 0o700)
    ballast = fill(small_disk)
    log = OutputLog(directory, 1 << 20)
    for _ in range(20):
        log.write(b"b" * 1000)
    assert (log.lost, os.listdir(directory)) == (20_000, [])
    ballast.unlink()
    log.write(b"d" * 1000)
    log.close()
    assert everything(directory) == left_out(20_000) + b"d" * 1000


def test_a_segment_that_somebody_removed_is_told_as_left_out(log: str) -> None:
    write(log, b"a" * 300, limit=800)
    os.unlink(os.path.join(log, "0" * 17 + "100"))
    assert everything(log) == b"a" * 100 + left_out(100) + b"a" * 100
    os.unlink(os.path.join(log, "0" * 20))
    assert everything(log) == left_out(200) + b"a" * 100


class TestFollow:
    def test_of_a_run_that_is_over_is_a_read(self, log: str) -> None:
        write(log, b"all")
        assert b"".join(follow(log, lambda: True)) == b"all"

    def test_every_byte_of_a_writer_that_is_still_at_it(self, log: str) -> None:
        """The reader lives through the making of the directory, segments, and the end; nothing is rotated away."""
        data = random.Random(2).randbytes(3_000_000)
        over = threading.Event()

        def produce() -> None:
            writer = OutputLog(log, 8 << 20)
            for start in range(0, len(data), 1000):
                writer.write(data[start : start + 1000])
            writer.close()
            over.set()

        producer = threading.Thread(target=produce)
        reading = follow(log, over.is_set, look_seconds=0.05)
        producer.start()
        assert b"".join(reading) == data
        producer.join(PATIENCE)

    def test_wakes_for_each_line_and_does_not_wait_for_the_look(self, log: str) -> None:
        """With a look only every hour, lines can come only because the reader is woken."""
        writer = OutputLog(log)
        over = False
        reading = follow(log, lambda: over, look_seconds=3600)
        writer.write(b"0\n")
        assert next(reading) == b"0\n"
        for number in range(1, 5):
            late = threading.Timer(0.05, writer.write, [b"%d\n" % number])
            late.start()
            assert next(reading) == b"%d\n" % number
            late.join()
        writer.close()

    def test_of_a_ring_that_turns_faster_than_the_reader(self, log: str) -> None:
        """What is read and what is told as missing make up the whole, and the end is the end."""
        writer = OutputLog(log, 8000)
        total = 0
        seen = bytearray()
        over = False
        reading = follow(log, lambda: over, look_seconds=0.01)
        for number in range(2000):
            line = b"%06d\n" % number
            writer.write(line * 10)
            total += 70
            if number % 50 == 0:
                seen += next(reading)
        over = True
        writer.close()
        for part in reading:
            seen += part
        lines = bytes(seen).split(b"\n")
        missing = sum(int(line.split()[1]) for line in lines if line.startswith(b"[mam: "))
        marks = sum(len(left_out(int(line.split()[1]))) for line in lines if line.startswith(b"[mam: "))
        assert len(seen) - marks + missing == total
        assert missing > 0
        assert seen.endswith(b"001999\n")

    def test_since_a_place(self, log: str) -> None:
        write(log, b"0123456789")
        assert b"".join(follow(log, lambda: True, 7)) == b"789"

"""The output log: what it keeps, which gaps a reader sees, and reading while it grows."""

from __future__ import annotations

import os
import random
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.work.output_log import OutputLog, follow, length, read, tail_start
from tests.disks import fill
from tests.work.support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable


def write(log: str, *parts: bytes, limit: int = 1 << 20) -> OutputLog:
    writer = OutputLog(log, limit)
    for part in parts:
        writer.write(part)
    writer.close()
    return writer


def everything(log: str, since: int = 0) -> bytes:
    return b"".join(read(log, since))


def files(log: str) -> list[Path]:
    """All that a log has on the disk."""
    more = Path(f"{log}.more")
    return [Path(log), *sorted(more.iterdir() if more.exists() else [])]


def size_of(log: str) -> int:
    return sum(path.stat().st_size for path in files(log))


def left_out(count: int) -> bytes:
    return b"\n[mam: %d bytes of output were left out here]\n" % count


def test_written_output_can_be_read(log: str) -> None:
    written = write(log, b"one\n", b"", b"\xff\0two")
    assert everything(log) == b"one\n\xff\0two"
    assert everything(log, 3) == b"\n\xff\0two"
    assert everything(log, 100) == b""
    assert (length(log), written.position, written.lost, written.problem) == (9, 9, 0, None)


def test_an_empty_or_missing_log_has_no_output(log: str, tmp_path: Path) -> None:
    write(log)
    assert everything(log) == b""
    assert (files(log), size_of(log)) == ([Path(log)], 0)
    assert everything(str(tmp_path / "none")) == b""
    assert length(str(tmp_path / "none")) == 0


def test_only_the_owner_reads_it(log: str) -> None:
    umask = os.umask(0)
    try:
        write(log, b"xy", limit=8)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(os.stat(f"{log}.more").st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in files(log)] == [0o600, 0o600]


def test_what_is_no_longer_than_a_segment_is_one_file(log: str) -> None:
    write(log, b"a" * 100, limit=800)
    assert files(log) == [Path(log)]


def test_the_beginning_and_the_end_are_kept(log: str) -> None:
    """A limit of 800 is eight segments of 100: the first, and the seven newest."""
    data = bytes(random.Random(1).randbytes(1234))
    written = write(log, data, limit=800)
    assert everything(log) == data[:100] + left_out(500) + data[600:]
    assert size_of(log) <= 800
    assert (length(log), written.position, written.lost) == (1234, 1234, 0)
    assert everything(log, 50) == data[50:100] + left_out(500) + data[600:]
    assert everything(log, 300) == left_out(300) + data[600:]
    assert everything(log, 700) == data[700:]


@pytest.mark.parametrize("limit", [0, 1, 7, 8, 9, 64, 1000])
def test_the_log_never_exceeds_its_limit(log: str, limit: int) -> None:
    chance = random.Random(limit)
    data = chance.randbytes(2000)
    parts, rest = [], data
    while rest:
        size = chance.randrange(1, 50)
        parts.append(rest[:size])
        rest = rest[size:]
    write(log, *parts, limit=limit)
    assert size_of(log) <= max(limit, 8)
    size = max(1, limit // 8)
    last = (2000 - 1) // size * size
    gap = max(size, last - 6 * size)
    assert everything(log) == data[:size] + (left_out(gap - size) if gap > size else b"") + data[gap:]


def test_a_later_writer_appends_to_the_first(log: str) -> None:
    write(log, b"a" * 250, limit=800)
    write(log, b"b" * 50, limit=800)
    assert everything(log) == b"a" * 250 + b"b" * 50
    write(log, b"c" * 2000, limit=800)
    assert everything(log).startswith(b"a" * 100 + b"\n[mam: ")
    assert size_of(log) <= 800


def test_a_later_writer_finds_a_log_in_which_nothing_is(log: str) -> None:
    write(log)
    write(log, b"a" * 250, limit=800)
    assert everything(log) == b"a" * 250


def test_links_and_other_files_are_not_part_of_it(log: str, tmp_path: Path) -> None:
    write(log, b"mine")
    secret, more = tmp_path / "secret", tmp_path / "log.more"
    secret.write_text("secret")
    more.mkdir()
    (more / ("0" * 19 + "4")).symlink_to(secret)
    os.mkfifo(more / ("0" * 19 + "5"))
    (more / ("0" * 19 + "6")).mkdir()
    (more / "notes").write_text("x")
    (more / ("٣" * 20)).write_text("x")
    assert everything(log) == b"mine"
    (tmp_path / "linked").symlink_to(log)
    (tmp_path / "linked.more").symlink_to(more)
    (more / ("0" * 19 + "4")).unlink()
    (more / ("0" * 19 + "4")).write_text("mine too")
    assert everything(str(tmp_path / "linked")) == b""
    assert everything(log) == b"minemine too"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_follower_of_an_invalid_log_does_not_hang(log: str, make: Callable[[str], None]) -> None:
    make(log)
    assert b"".join(follow(log, lambda: True)) == b""


def test_a_log_of_an_older_version_is_read(log: str) -> None:
    """All segments in a directory of the log's own name."""
    os.mkdir(log)
    for start, content in ((0, b"first "), (6, b"second "), (20, b"third")):
        Path(log, f"{start:020}").write_bytes(content)
    whole = b"first second " + left_out(7) + b"third"
    assert (everything(log), length(log)) == (whole, 25)
    assert b"".join(follow(log, lambda: True)) == whole


def test_a_link_where_the_next_segment_begins_is_not_followed(log: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    os.mkdir(f"{log}.more", 0o700)
    os.symlink(victim, os.path.join(f"{log}.more", f"{7:020}"))
    written = write(log, b"hostilehostile", limit=56)
    assert victim.read_text() == "untouched"
    assert (written.lost, written.problem) == (7, "File exists")


def test_a_link_in_the_place_of_the_log_is_not_followed(log: str, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("untouched")
    os.symlink(tmp_path / "victim", log)
    written = write(log, b"kept all the same")
    assert (tmp_path / "victim").read_text() == "untouched"
    assert (everything(log), written.lost) == (b"kept all the same", 0)


def test_a_link_in_the_place_of_its_directory_is_not_followed(log: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", f"{log}.more")
    written = write(log, b"a" * 250, limit=800)
    assert (everything(log), written.lost) == (b"a" * 100, 150)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_full_disk_loses_bytes_and_counts_them(small_disk: Path) -> None:
    log = str(small_disk / "log")
    writer = OutputLog(log, 1 << 20)
    writer.write(b"a" * 1000)
    ballast = fill(small_disk)
    writer.write(b"b" * 10_000)
    writer.write(b"c" * 10_000)
    assert (writer.problem, writer.position) == ("No space left on device", 21_000)
    assert 0 < writer.lost <= 20_000
    assert files(log) == [Path(log)]  # no empty files pile up
    ballast.unlink()
    writer.write(b"d" * 1000)
    writer.close()
    kept = everything(log)
    assert kept.startswith(b"a" * 1000)
    assert kept.endswith(left_out(writer.lost) + b"d" * 1000)
    assert length(log) == 22_000


def test_a_disk_that_is_full_from_the_beginning(small_disk: Path) -> None:
    log = str(small_disk / "log")
    ballast = fill(small_disk)
    writer = OutputLog(log, 1 << 20)
    for _ in range(20):
        writer.write(b"b" * 1000)
    assert (writer.lost, size_of(log), len(files(log))) == (20_000, 0, 1)
    ballast.unlink()
    writer.write(b"d" * 1000)
    writer.close()
    assert everything(log) == left_out(20_000) + b"d" * 1000


def test_a_removed_segment_shows_as_a_gap(log: str) -> None:
    write(log, b"a" * 300, limit=800)
    os.unlink(os.path.join(f"{log}.more", f"{100:020}"))
    assert everything(log) == b"a" * 100 + left_out(100) + b"a" * 100
    os.unlink(log)
    assert everything(log) == left_out(200) + b"a" * 100


class TestFollow:
    def test_of_a_run_that_is_over_is_a_read(self, log: str) -> None:
        write(log, b"all")
        assert b"".join(follow(log, lambda: True)) == b"all"

    def test_every_byte_of_a_writer_that_still_writes(self, log: str) -> None:
        """The reader lives through the making of the log, its segments, and the end; nothing is rotated away."""
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

    def test_wakes_when_the_log_outgrows_its_first_file(self, log: str) -> None:
        writer = OutputLog(log, 8 * 4)
        reading = follow(log, lambda: False, look_seconds=3600)
        writer.write(b"0123")
        assert next(reading) == b"0123"
        for part in (b"4567", b"89", b"ab", b"cd"):
            late = threading.Timer(0.05, writer.write, [part])
            late.start()
            assert next(reading) == part
            late.join()
        writer.close()

    def test_of_a_ring_that_turns_faster_than_the_reader(self, log: str) -> None:
        """The bytes read and the bytes reported as missing add up to the whole, and the end is the end."""
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

    def test_following_begins_at_an_offset(self, log: str) -> None:
        write(log, b"0123456789")
        assert b"".join(follow(log, lambda: True, 7)) == b"789"


class TestTail:
    @pytest.mark.parametrize("end", [b"", b"\n"])
    @pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
    def test_the_tail_begins_with_the_last_lines(self, log: str, end: bytes, count: int) -> None:
        write(log, b"one\ntwo\n\nfour" + end)
        lines = [b"one\n", b"two\n", b"\n", b"four" + end]
        assert everything(log, tail_start(log, count)) == b"".join(lines[-count:])

    def test_the_tail_of_an_empty_log_is_empty(self, log: str) -> None:
        write(log)
        assert tail_start(log, 5) == 0

    def test_the_tail_spans_segments_and_gaps(self, log: str) -> None:
        lines = [b"%07d\n" % at for at in range(200_000)]
        write(log, *[b"".join(lines[at : at + 1000]) for at in range(0, len(lines), 1000)], limit=1 << 20)
        for count in (1, 1000, 50_000):
            assert everything(log, tail_start(log, count)) == b"".join(lines[-count:])
        assert everything(log, tail_start(log, 150_000)).endswith(lines[-1])

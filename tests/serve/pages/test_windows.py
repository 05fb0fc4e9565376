"""The page reads a long output in windows of whole lines, from its end."""

from __future__ import annotations

from mam.access.registry import AuthorizedRegistry
from mam.access.viewer import local_viewer
from mam.registry import Registry
from mam.serve.pages.conversations import WINDOW, output_size, output_window
from mam.stores.memory import MemoryStore
from mam.stores.outputs import PIECE_LIMIT, AttemptId, OutputLimits, Piece
from mam.testing.clock import FakeClock

LIMITS = OutputLimits(head=64 << 20, tail=64 << 20)


def printed(data: bytes) -> tuple[AuthorizedRegistry, str]:
    """A registry with a running job that printed this on another host."""
    registry = Registry(MemoryStore(FakeClock()))
    job_id = registry.register(prompt="x", agent="codex").job.job_id
    job = registry.pick("codex", owner="me")
    assert job is not None
    attempt = AttemptId(job_id=job_id, attempt=1, claim_id=job.claim_id)
    for start in range(0, len(data), PIECE_LIMIT):
        piece = Piece(start=start, data=data[start : start + PIECE_LIMIT])
        registry.store.outputs.append(attempt, piece, LIMITS)
    return AuthorizedRegistry(registry, local_viewer("anna")), job_id


def test_windows_from_the_end_are_the_whole_output() -> None:
    data = b"".join(f"line {number} {'x' * (number % 97)}\n".encode() for number in range(30_000))
    reading, job_id = printed(data)
    job, end, parts = reading.get(job_id), None, list[bytes]()
    while end != 0:
        window = output_window(reading, job, 1, end)
        assert window is not None
        assert (len(window.data) <= WINDOW, window.size) == (True, len(data))
        assert window.start == 0 or data[window.start - 1 : window.start] == b"\n", "a window begins with a line"
        parts.insert(0, window.data)
        end = window.start
    assert len(parts) > 3
    assert b"".join(parts) == data


def test_the_last_window_is_known_as_such() -> None:
    reading, job_id = printed(b"one\ntwo\n")
    job = reading.get(job_id)
    last, earlier = output_window(reading, job, 1), output_window(reading, job, 1, 4)
    assert last is not None
    assert earlier is not None
    assert (last.data, last.is_last, earlier.data, earlier.is_last) == (b"one\ntwo\n", True, b"one\n", False)
    assert output_window(reading, job, 0) is None


def test_one_line_that_is_longer_than_a_window_does_not_stop_the_way_back() -> None:
    reading, job_id = printed(b"first\n" + b"y" * (3 * WINDOW) + b"\nlast\n")
    job, end, seen = reading.get(job_id), None, 0
    while end != 0:
        window = output_window(reading, job, 1, end)
        assert window is not None
        assert end is None or window.start < end
        end = window.start
        seen += 1
    assert seen < 10


def test_the_size_of_an_output_is_known_without_reading_what_a_page_shows() -> None:
    reading, job_id = printed(b"z" * 1000)
    job = reading.get(job_id)
    assert (output_size(reading, job), output_size(reading, job, 1000), output_size(reading, job, 400)) == (1000,) * 3

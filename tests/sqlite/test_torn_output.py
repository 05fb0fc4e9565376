"""The output of agents beside a local store: what a kill, a power cut or a full disk left torn is cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mam.registry import Registry
from mam.stores.outputs import DIFF, AttemptId, OutputLimits, Piece
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.conformance.base import register_and_claim
from tests.faults.killing import at_calls, kill_points

LIMITS = OutputLimits()


class Place:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "jobs.db")
        create_sqlite_store(self.path)
        store = SqliteStore(self.path)
        job = register_and_claim(Registry(store))
        self.attempt = AttemptId(job_id=job.job_id, attempt=1, claim_id=job.claim_id)
        store.close()

    def append(self, start: int, data: bytes) -> None:
        """As a new process would."""
        store = SqliteStore(self.path)
        store.outputs.append(self.attempt, Piece(start=start, data=data), LIMITS)
        store.close()

    def text(self) -> bytes:
        store = SqliteStore(self.path)
        found = b"".join(piece.data for piece in store.outputs.read(self.attempt.job_id, 1))
        store.close()
        return found

    def head(self) -> Path:
        (found,) = Path(f"{self.path}-outputs").glob("*/*.head")
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("kept", [*range(20), 22])
def test_a_torn_piece_is_ignored_and_sent_again(place: Place, kept: int) -> None:
    place.append(0, b"whole ")
    size = place.head().stat().st_size
    place.append(6, b"torn ")
    content = place.head().read_bytes()
    place.head().write_bytes(content[: min(size + kept, len(content) - 1)])
    assert place.text() == b"whole "
    place.append(6, b"torn again")
    assert place.text() == b"whole torn again"


def test_zeros_of_a_power_cut_are_ignored(place: Place) -> None:
    place.append(0, b"whole ")
    with place.head().open("ab") as file:
        file.write(bytes(4096))
    assert place.text() == b"whole "
    place.append(6, b"more")
    assert place.text() == b"whole more"


def test_a_changed_byte_ends_what_is_read(place: Place) -> None:
    place.append(0, b"whole ")
    place.append(6, b"other")
    content = bytearray(place.head().read_bytes())
    content[-1] ^= 1
    place.head().write_bytes(content)
    assert place.text() == b"whole "


def test_killed_before_any_step_of_an_upload(tmp_path: Path) -> None:
    place, sent = Place(tmp_path), b"a line of output\n"

    def work(acknowledge: Callable[[str], None]) -> None:
        store = SqliteStore(place.path)
        have = len(b"".join(piece.data for piece in store.outputs.read(place.attempt.job_id, 1)))
        store.outputs.append(place.attempt, Piece(start=have, data=sent), LIMITS)
        acknowledge("output")
        store.outputs.put(place.attempt, DIFF, "", b"the diff", LIMITS)
        acknowledge("diff")
        store.close()

    before = 0
    for _step, acknowledged in kill_points(at_calls, work):
        text = place.text()
        assert text == sent * (len(text) // len(sent)), "whole pieces, in order"
        assert len(text) >= before + len(sent) * ("output" in acknowledged)
        before = len(text)
        store = SqliteStore(place.path)
        files, diff = store.outputs.files(place.attempt.job_id), store.outputs.get(place.attempt.job_id, 1, DIFF)
        assert (diff == b"the diff") == bool(files)
        assert files or "diff" not in acknowledged
        store.close()

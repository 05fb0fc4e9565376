"""What an attempt leaves behind: its output in pieces, its diff and its artifacts, fenced and bounded."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from mam.errors import BadInput, ClaimLost, UnknownJob
from mam.stores.outputs import ARTIFACT, DIFF, PIECE_LIMIT, AttemptId, OutputLimits, Piece
from mam.testing.conformance.base import StoreCase, claim_again, register_and_claim

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock

LIMITS = OutputLimits(head=10, tail=20, file=100)


def attempt_of(job: Job) -> AttemptId:
    return AttemptId(job_id=job.job_id, attempt=job.attempt, claim_id=job.claim_id)


def append(store: Store, job: Job, start: int, data: bytes, limits: OutputLimits = LIMITS) -> None:
    store.outputs.append(attempt_of(job), Piece(start=start, data=data), limits)


def text(store: Store, job: Job, since: int = 0) -> bytes:
    return b"".join(piece.data for piece in store.outputs.read(job.job_id, job.attempt, since))


class Outputs(StoreCase):
    def test_pieces_make_up_the_output(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        assert text(store, job) == b""
        append(store, job, 0, b"one\n")
        append(store, job, 4, b"two\0\xff\n")
        assert text(store, job) == b"one\ntwo\0\xff\n"
        assert text(store, job, 2) == b"e\ntwo\0\xff\n"
        assert list(store.outputs.read(job.job_id, job.attempt, 100)) == []

    def test_a_repeat_changes_nothing_even_if_it_brings_more(self, registry: Registry, store: Store) -> None:
        """A worker whose answer was lost sends the same bytes again, and what came since."""
        job = register_and_claim(registry)
        append(store, job, 0, b"abc")
        append(store, job, 0, b"abc")
        append(store, job, 0, b"abcdef")
        append(store, job, 3, b"defg")
        append(store, job, 2, b"cd")
        assert text(store, job) == b"abcdefg"

    def test_the_beginning_and_the_end_are_kept(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        for start in range(0, 200, 5):
            append(store, job, start, b"%5d" % start)
        pieces = list(store.outputs.read(job.job_id, job.attempt))
        assert pieces[0].start == 0
        assert text(store, job)[:10] == b"    0    5"
        assert pieces[-1] == Piece(start=195, data=b"  195")
        kept = sum(len(piece.data) for piece in pieces)
        assert LIMITS.head + LIMITS.tail <= kept <= LIMITS.head + 2 * LIMITS.tail + 5
        assert all(one.end <= two.start for one, two in pairwise(pieces))

    def test_a_piece_may_come_after_a_gap(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        append(store, job, 0, b"abc")
        append(store, job, 50, b"xyz")
        assert [piece.start for piece in store.outputs.read(job.job_id, job.attempt)] == [0, 50]
        assert text(store, job, 51) == b"yz"

    def test_a_piece_that_is_too_long_is_rejected(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        append(store, job, 0, b"x" * PIECE_LIMIT, OutputLimits())
        with pytest.raises(BadInput):
            append(store, job, PIECE_LIMIT, b"x" * (PIECE_LIMIT + 1), OutputLimits())
        with pytest.raises(BadInput):
            append(store, job, -1, b"x")
        assert text(store, job) == b"x" * PIECE_LIMIT

    def test_a_newer_claim_ends_the_right_to_add(self, registry: Registry, store: Store) -> None:
        first = register_and_claim(registry)
        append(store, first, 0, b"first")
        registry.release(first.job_id, attempt=first.attempt)
        append(store, first, 5, b" word")
        second = claim_again(registry, first.job_id)
        with pytest.raises(ClaimLost, match="has taken over"):
            append(store, first, 10, b" lost")
        with pytest.raises(ClaimLost):
            store.outputs.put(attempt_of(first), DIFF, "", b"lost", LIMITS)
        append(store, second, 0, b"second")
        assert text(store, first) == b"first word"
        assert text(store, second) == b"second"
        assert store.outputs.files(first.job_id) == []

    def test_another_claim_of_the_same_attempt_may_not_add(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        for other in (job.replace(claim_id="f" * 32), job.replace(attempt=job.attempt + 1)):
            with pytest.raises(ClaimLost):
                append(store, other, 0, b"lost")
        assert text(store, job) == b""

    def test_an_attempt_may_append_output_after_its_end(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        append(store, job, 0, b"ends")
        registry.cancel(job.job_id)
        append(store, job, 4, b" now")
        assert text(store, job) == b"ends now"

    def test_there_is_nothing_to_add_to_without_a_job(self, store: Store) -> None:
        nobody = AttemptId(job_id="nobody00", attempt=1, claim_id=None)
        with pytest.raises(UnknownJob):
            store.outputs.append(nobody, Piece(start=0, data=b"x"), LIMITS)
        with pytest.raises(UnknownJob):
            store.outputs.put(nobody, DIFF, "", b"x", LIMITS)
        assert store.outputs.files("../etc") == []
        assert list(store.outputs.read("../etc", 1)) == []

    def test_files_are_found_by_attempt_kind_and_path(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        put = store.outputs.put
        put(attempt_of(job), DIFF, "", b"--- a\n+++ b\n", LIMITS)
        put(attempt_of(job), ARTIFACT, "out/b.bin", b"\0\xff", LIMITS)
        stored = put(attempt_of(job), ARTIFACT, "a\nü", b"--- a\n+++ b\n", LIMITS)
        assert stored.sha256 == hashlib.sha256(b"--- a\n+++ b\n").hexdigest()
        found = store.outputs.files(job.job_id)
        assert [(one.kind, one.path, one.size) for one in found] == [
            (ARTIFACT, "a\nü", 12),
            (ARTIFACT, "out/b.bin", 2),
            (DIFF, "", 12),
        ]
        assert found[0] == stored
        get = store.outputs.get
        assert get(job.job_id, job.attempt, DIFF) == b"--- a\n+++ b\n"
        assert get(job.job_id, job.attempt, ARTIFACT, "out/b.bin") == b"\0\xff"
        assert get(job.job_id, job.attempt, ARTIFACT, "out") is None
        assert get(job.job_id, job.attempt + 1, DIFF) is None

    def test_a_file_is_replaced_as_a_whole(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        for data in (b"old", b"new", b"new"):
            store.outputs.put(attempt_of(job), DIFF, "", data, LIMITS)
        assert store.outputs.get(job.job_id, job.attempt, DIFF) == b"new"
        assert len(store.outputs.files(job.job_id)) == 1

    def test_only_the_size_and_hash_of_a_file_above_the_limit_are_stored(
        self, registry: Registry, store: Store
    ) -> None:
        job = register_and_claim(registry)
        stored = store.outputs.put(attempt_of(job), ARTIFACT, "big", b"x" * 101, LIMITS)
        assert (stored.size, stored.is_stored) == (101, False)
        assert store.outputs.files(job.job_id) == [stored]
        assert store.outputs.get(job.job_id, job.attempt, ARTIFACT, "big") is None

    def test_old_output_is_removed(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        old, job = register_and_claim(registry), register_and_claim(registry)
        append(store, old, 0, b"old")
        for one, data in ((old, b"shared"), (job, b"shared"), (old, b"alone")):
            store.outputs.put(attempt_of(one), ARTIFACT, data.decode(), data, LIMITS)
            clock.advance(60)
        store.outputs.put(attempt_of(job), ARTIFACT, "shared", b"shared", LIMITS)
        append(store, job, 0, b"new")
        assert store.outputs.expire(clock.now().wall_ms) >= 2
        assert (text(store, old), text(store, job)) == (b"", b"new")
        assert store.outputs.files(old.job_id) == []
        assert store.outputs.get(job.job_id, job.attempt, ARTIFACT, "shared") == b"shared"
        assert store.outputs.expire(clock.now().wall_ms) == 0

    def test_an_archived_job_keeps_its_output(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        append(store, job, 0, b"kept")
        registry.complete(job.job_id)
        register_and_claim(registry)
        assert registry.archive([job.job_id]) == [job.job_id]
        assert text(store, job) == b"kept"


class DurableOutputs(StoreCase):
    def test_another_process_reads_and_continues(self, registry: Registry, store: Store, location: str) -> None:
        job = register_and_claim(registry)
        append(store, job, 0, b"abc")
        store.outputs.put(attempt_of(job), DIFF, "", b"diff", LIMITS)
        other = self.open_store(location)
        append(other, job, 3, b"def")
        append(store, job, 6, b"ghi")
        assert text(other, job) == b"abcdefghi"
        assert other.outputs.get(job.job_id, job.attempt, DIFF) == b"diff"
        other.close()

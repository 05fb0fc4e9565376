"""What a worker copies into the store, so that other hosts can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.config.settings import Config
from mam.stores.outputs import ARTIFACT, OutputLimits, Piece
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.conformance.base import register_and_claim
from mam.work.masking import Mask, known_secrets
from mam.work.output_source import StoredOutput, output_of
from mam.work.upload import Upload, Uploader, output_settings
from tests.waiting import Gate, await_that
from tests.work.worker_harness import Harness
from tests.work.worker_harness_fixtures import harness_fixture, make_store, quick_fixture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.stores.port import Store

__all__ = ["harness_fixture", "quick_fixture"]
SECRET = "s3cr3t-of-the-worker"


def stored(store: Store, job: Job) -> bytes:
    return b"".join(piece.data for piece in store.outputs.read(job.job_id, job.attempt))


class TestWorker:
    def test_the_output_is_in_the_store_when_the_job_has_ended(self, harness: Harness) -> None:
        job = harness.ended("echo out; echo err >&2")
        assert sorted(stored(harness.store, job).split()) == [b"err", b"out"]

    def test_a_job_without_output_leaves_nothing(self, harness: Harness) -> None:
        job = harness.ended("true")
        assert stored(harness.store, job) == b""

    def test_it_comes_while_the_agent_runs(self, harness: Harness, tmp_path: Path) -> None:
        gate = Gate(tmp_path)
        with harness.at_work():
            job_id = harness.job(f"echo first; {gate.wait}; echo last")
            await_that(lambda: stored(harness.store, harness.get(job_id)) == b"first\n")
            gate.open()
            job = harness.until(job_id)
        gate.close()
        assert stored(harness.store, job) == b"first\nlast\n"

    def test_a_cancelled_one_leaves_what_it_printed(self, harness: Harness) -> None:
        with harness.at_work():
            job_id = harness.job("echo half; exec sleep 1000")
            await_that(lambda: stored(harness.store, harness.get(job_id)) == b"half\n")
            harness.registry.cancel(job_id)
            assert harness.until(job_id).status == "cancelled"
        assert stored(harness.store, harness.get(job_id)) == b"half\n"

    def test_each_attempt_has_its_own(self, harness: Harness) -> None:
        job = harness.ended("echo attempt $MAM_ATTEMPT; exit 1", max_retries=0)
        again = harness.registry.retry(job.job_id)
        harness.drain()
        assert stored(harness.store, harness.get(again.job.job_id)) == b"attempt 1\n"
        assert stored(harness.store, job) == b"attempt 1\n"

    @pytest.mark.parametrize(("upload", "kept"), [("none", b""), ("conversation", b""), ("all", b"word\n")])
    def test_the_setting_decides_what_is_copied(self, quick: Harness, upload: str, kept: bytes) -> None:
        quick.config = Config(output={"upload": upload})
        job = quick.ended("echo word; echo made >made.txt", artifacts=["made.txt"])
        assert stored(quick.store, job) == kept
        assert [file.path for file in quick.store.outputs.files(job.job_id)] == ["made.txt"] * bool(kept)

    def test_artifacts_follow_at_the_end(self, harness: Harness) -> None:
        artifacts = ["made.txt", "sub/more.bin"]
        job = harness.ended("echo made >made.txt; mkdir sub; printf '\\0\\377' >sub/more.bin", artifacts=artifacts)
        assert job.status == "completed"
        get = harness.store.outputs.get
        assert get(job.job_id, 1, ARTIFACT, "made.txt") == b"made\n"
        assert get(job.job_id, 1, ARTIFACT, "sub/more.bin") == b"\0\xff"

    def test_known_secrets_are_masked_and_never_stored(self, quick: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VENDOR_API_KEY", SECRET)
        script = 'echo "key: $VENDOR_API_KEY."; echo $VENDOR_API_KEY >leak.txt; echo fine >fine.txt'
        job = quick.ended(script, artifacts=["leak.txt", "fine.txt"])
        assert stored(quick.store, job) == b"key: " + b"*" * len(SECRET) + b".\n"
        assert [file.path for file in quick.store.outputs.files(job.job_id)] == ["fine.txt"]

    def test_a_store_that_cannot_take_it_costs_no_job(self, tmp_path: Path) -> None:
        harness = Harness(make_store("sqlite", tmp_path), tmp_path)
        (tmp_path / "jobs.db-outputs").write_text("a file is in its place", encoding="utf-8")
        job = harness.ended("echo word; echo made >made.txt", artifacts=["made.txt"])
        assert (job.status, job.result) == ("completed", "word")
        assert "not stored for other hosts" in " ".join(harness.said)
        harness.store.close()


class Sending:
    """An upload of one attempt whose log the test writes."""

    def __init__(self, folder: Path, limits: OutputLimits, secrets: list[str]) -> None:
        create_sqlite_store(str(folder / "jobs.db"))
        self.store = SqliteStore(str(folder / "jobs.db"))
        from mam.registry import Registry

        self.job = register_and_claim(Registry(self.store))
        self.log = folder / "log"
        self.log.write_bytes(b"")
        self.upload = Upload(self.store.outputs, self.job, limits, Mask(secrets), sends_output=True, sends_files=True)
        self.upload.begin(str(self.log))

    def write(self, data: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(data)

    def pieces(self) -> list[Piece]:
        return list(self.store.outputs.read(self.job.job_id, 1))

    def text(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces())


@pytest.fixture
def sending(tmp_path: Path) -> Iterator[Sending]:
    made = Sending(tmp_path, OutputLimits(head=100, tail=100), [SECRET, 'two"words'])
    yield made
    made.store.close()


class TestUpload:
    def test_a_secret_that_comes_in_parts_is_masked(self, sending: Sending) -> None:
        for letter in f"a {SECRET} b\n".encode():
            sending.write(bytes([letter]))
            sending.upload.send()
        sending.upload.send(is_all=True)
        assert sending.text() == b"a " + b"*" * len(SECRET) + b" b\n"

    def test_a_secret_in_json_is_masked(self, sending: Sending) -> None:
        sending.write(b'{"text": "two\\"words"}')
        sending.upload.send(is_all=True)
        assert sending.text() == b'{"text": "**********"}'

    def test_the_beginning_of_a_secret_is_sent_at_the_end(self, sending: Sending) -> None:
        sending.write(b"word s3cr3t")
        sending.upload.send()
        assert sending.text() == b"word "
        sending.upload.send(is_all=True)
        assert sending.text() == b"word s3cr3t"

    def test_data_that_the_store_would_drop_is_not_sent(self, sending: Sending) -> None:
        sending.write(b"x" * 100)
        sending.upload.send()
        sending.write(b"y" * 5000 + SECRET.encode() + b"z" * 90)
        sending.upload.send(is_all=True)
        assert sending.text() == b"x" * 100 + b"*" * 10 + b"z" * 90
        assert [piece.start for piece in sending.pieces()] == [0, 5100 + len(SECRET) - 10]

    def test_an_upload_continues_where_it_stopped(self, sending: Sending) -> None:
        sending.write(b"one ")
        sending.upload.send()
        again = Upload(
            sending.store.outputs, sending.job, OutputLimits(), Mask([]), sends_output=True, sends_files=True
        )
        again.begin(str(sending.log))
        sending.write(b"two")
        again.send(is_all=True)
        sending.upload.send(is_all=True)
        assert sending.text() == b"one two"

    def test_a_lost_attempt_sends_nothing_more(self, sending: Sending) -> None:
        from mam.registry import Registry

        registry = Registry(sending.store)
        registry.release(sending.job.job_id, attempt=1)
        assert registry.pick(sending.job.agent_session, owner="other") is not None
        sending.write(b"late")
        sending.upload.send(is_all=True)
        assert sending.text() == b""


def test_the_reader_finds_what_is_not_on_this_host(harness: Harness) -> None:
    job = harness.ended("echo one; echo two; echo three")
    source = output_of(harness.registry, job.job_id, 1)
    assert isinstance(source, StoredOutput), "the harness has its logs elsewhere"
    assert source.exists()
    assert b"".join(source.read()) == b"one\ntwo\nthree\n"
    assert b"".join(source.follow(lambda: True, 4)) == b"two\nthree\n"
    assert (source.tail_start(1), source.tail_start(2), source.tail_start(9)) == (8, 4, 0)


def test_secrets_are_known_by_their_names() -> None:
    environ = {
        "A_TOKEN": "t" * 8,
        "PGPASSWORD": "short",
        "HOME": "/home/anna",
        "MAM_STORE": "postgresql://u:passw0rd@h/d",
    }
    assert known_secrets(environ) == ["t" * 8, "passw0rd"]


def test_a_worker_removes_old_output(tmp_path: Path) -> None:
    sending = Sending(tmp_path, OutputLimits(), [])
    sending.write(b"old")
    sending.upload.send(is_all=True)
    settings = output_settings({"keep_days": 0})
    uploader = Uploader(sending.store, settings, [])
    uploader.follow(sending.upload)
    await_that(lambda: sending.text() == b"")
    uploader.close()
    sending.store.close()

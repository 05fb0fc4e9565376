"""mam does what the older watcher did, without its mistakes. Each docstring states what the older one did."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from mam.stores.files.store import FilesStore
from mam.util.clock import parse_time
from tests.inbox.commands import WHERE, InboxCommand
from tests.needs import need
from tests.ownership.repositories import git
from tests.waiting import await_that
from tests.work.repositories import make_repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def inbox(tmp_path: Path) -> InboxCommand:
    return InboxCommand(tmp_path)


def state(inbox: InboxCommand, job_id: str) -> dict[str, object]:
    record: dict[str, object] = json.loads((inbox.here / ".queue/jobs" / job_id / "job.json").read_bytes())
    return record


def test_a_retryable_failure_returns_to_the_queue_and_keeps_its_file(inbox: InboxCommand) -> None:
    inbox.configure(queue="max_retries = 1")
    inbox.drop("mam fail --retryable --reason git-error")
    _on_path(inbox)
    watcher = inbox.start("inbox", "watch")
    try:
        await_that(lambda: inbox("list", "--status", "waiting").out != "", "it never failed")
        (job,) = inbox("list", "--json").json
        running = inbox.here / "inbox" / WHERE / "x.running.md"
        await_that(lambda: state(inbox, job["job_id"])["state"] == "failed_retryable", "the mirror never said so")
        assert running.exists()
        await_that((inbox.here / "finished" / WHERE / "x.error.md").exists, "it never gave up")
    finally:
        watcher.terminate()
        watcher.communicate(timeout=60)
    record = state(inbox, job["job_id"])
    assert (record["state"], record["retries"]) == ("failed_final", 1)
    assert str(record["inbox_rel"]).endswith("x.prompt.md")
    metadata = record["metadata"]
    assert isinstance(metadata, dict)
    assert parse_time(metadata["last_retry"])
    assert "gave up after 1 retry" in inbox.outcome("x.error.md")
    assert not running.exists()


def test_without_retries_the_first_failure_is_the_last_and_its_prompt_is_kept(inbox: InboxCommand) -> None:
    inbox.configure(queue="max_retries = 0\nfailure_archive = true")
    inbox.drop("mam fail --retryable --reason git-error")
    _on_path(inbox)
    ((job_id, status, _),) = inbox.once(code=7)
    record = state(inbox, job_id)
    assert (status, record["state"], record["retries"]) == ("error", "failed_final", 0)
    with open(str(record["archived_path"]), encoding="utf-8") as file:
        assert file.read() == "mam fail --retryable --reason git-error"


def test_one_bad_job_does_not_keep_the_others_waiting(inbox: InboxCommand) -> None:
    """It was retried at once and first, again and again."""
    inbox.drop("mam fail --retryable --reason again", "a.prompt.md")
    _on_path(inbox)
    os.utime(inbox.here / "inbox" / WHERE / "a.prompt.md", (1, 1))
    inbox.drop("true", "b.prompt.md")
    watcher = inbox.start("inbox", "watch")
    try:
        await_that((inbox.here / "finished" / WHERE / "b.done.md").exists, "b waits behind a")
        store = FilesStore(str(inbox.here / ".mam" / "jobs"))
        lines = [line for entry in store.entries(None) for line in entry.lines]
        first, second, *_ = [line["job_id"] for line in lines if line.get("to") == "running"]
        assert first != second
        assert {line["by"] for line in lines if line.get("to") == "waiting"} == {"fail"}
    finally:
        watcher.terminate()
        watcher.communicate(timeout=60)


def test_a_repository_with_changes_of_its_own_is_left_as_it_is(inbox: InboxCommand, tmp_path: Path) -> None:
    """It was deleted and cloned again."""
    source = make_repository(tmp_path / "source")
    (source.path / "mine.txt").write_text("not committed")
    inbox.configure(repos=f'"acme/shop" = "{source.path}"')
    inbox.drop("ls; echo new > new.txt")
    ((_, status, _),) = inbox.once()
    assert status == "completed"
    assert (source.path / "mine.txt").read_text() == "not committed"
    assert source.git("status", "--porcelain") == "?? mine.txt"
    assert "mine.txt" not in inbox.outcome().rpartition("## Result")[2]


def test_a_directory_that_is_not_a_repository_is_reported(inbox: InboxCommand, tmp_path: Path) -> None:
    need("git")
    (tmp_path / "plain").mkdir()
    inbox.configure(repos=f'"acme/shop" = "{tmp_path}/plain"', queue="max_retries = 0")
    inbox.drop("true")
    inbox.once(code=7)
    assert "could not be fetched" in inbox.outcome("x.error.md")


def test_everything_stays_below_the_root(inbox: InboxCommand, tmp_path: Path) -> None:
    root = tmp_path / "elsewhere"
    (root / "inbox" / WHERE).mkdir(parents=True)
    (root / "inbox" / WHERE / "x.prompt.md").write_text("true")
    inbox.configure(f'root = "{root}"')
    inbox.once()
    assert sorted(os.listdir(root)) == [".queue", "finished", "inbox", "processed"]
    assert sorted(os.listdir(inbox.here)) == [".mam"]


def test_the_settings_name_the_directory_of_the_mirror(inbox: InboxCommand, tmp_path: Path) -> None:
    inbox.configure(queue=f'jobs_root = "{tmp_path}/older/jobs"')
    inbox.drop("true")
    ((job_id, _, _),) = inbox.once()
    assert sorted(os.listdir(tmp_path / "older" / "jobs" / job_id)) == ["job.json", "state"]
    assert not (inbox.here / ".queue" / "jobs").exists()


def test_a_job_that_waits_for_its_turn_can_be_called_off(inbox: InboxCommand) -> None:
    """Only a running job could be cancelled, and it then ended as failed."""
    inbox.drop("echo never")
    inbox.once("--concurrency", "0")
    (job,) = inbox("list", "--json").json
    assert inbox("cancel", job["job_id"], "--reason", "not needed any more").code == 0
    inbox.once(code=8)
    outcome = inbox.outcome("x.error.md")
    assert outcome.startswith("echo never")
    assert "- status: cancelled" in outcome
    assert "- why: not needed any more" in outcome
    assert state(inbox, job["job_id"])["state"] == "failed_final"


def test_an_unknown_job_of_the_older_queue_is_reported_and_left(inbox: InboxCommand) -> None:
    """It was skipped silently."""
    stranger = inbox.here / ".queue" / "jobs" / ("0" * 32)
    stranger.mkdir(parents=True)
    (stranger / "job.json").write_text("{")
    inbox.drop("true")
    ran = inbox("inbox", "once")
    assert ran.code == 0, ran.stderr
    assert str(stranger) in ran.stderr
    assert (stranger / "job.json").read_text() == "{"
    assert len(inbox("list", "--json").json) == 1


def test_what_a_job_prints_can_be_read_while_it_runs(inbox: InboxCommand, tmp_path: Path) -> None:
    """Its log was empty until it ended."""
    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    inbox.drop(f"echo half way; cat {pipe}")
    watcher = inbox.start("inbox", "watch")
    try:
        await_that(lambda: inbox("list", "--status", "running").out != "", "it never ran")
        (job,) = inbox("list", "--json").json
        await_that(lambda: "half way" in inbox("output", job["job_id"]).out, "nothing is seen of it")
        assert inbox("cancel", job["job_id"]).code == 0
        await_that((inbox.here / "finished" / WHERE / "x.error.md").exists, "it was never told")
    finally:
        watcher.terminate()
        watcher.communicate(timeout=60)
    assert "- status: cancelled" in inbox.outcome("x.error.md")
    assert state(inbox, job["job_id"])["state"] == "failed_final"


def _on_path(inbox: InboxCommand) -> None:
    """So that the job can run `mam`."""
    import sys

    programs = inbox.home / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "mam").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam "$@"\n')
    (programs / "mam").chmod(0o755)
    inbox.env["PATH"] = f"{programs}:{os.environ['PATH']}"


def test_a_claimed_file_keeps_the_id_and_the_counter_of_the_older_queue(inbox: InboxCommand) -> None:
    old = "0123456789abcdef0123456789abcdef"
    running = inbox.here / "inbox" / WHERE / "old.running.md"
    running.parent.mkdir(parents=True)
    running.write_text("true")
    record = {
        "job_id": old, "git_owner": "acme", "repo_name": "shop", "branch_name": "main", "inbox_file": str(running),
        "inbox_rel": f"{WHERE}/old.prompt.md", "state": "failed_retryable", "retries": 2,
        "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-02T00:00:00Z",
        "metadata": {"reason": "new_prompt", "last_retry": "2025-01-02T00:00:00Z"},
    }  # fmt: skip
    entry = inbox.here / ".queue/jobs" / old
    entry.mkdir(parents=True)
    (entry / "job.json").write_text(json.dumps(record))
    (entry / "state").write_text("failed_retryable\n")

    ((job_id, status, _),) = inbox.once()

    assert (job_id, status) == (old, "completed")
    now = state(inbox, old)
    assert (now["state"], now["retries"], now["created_at"]) == ("succeeded", 2, "2025-01-01T00:00:00Z")
    assert [job["job_id"] for job in inbox("list", "--json").json] == [old]


CONFIG = """
pv_root: {root}
git_owner: acme
inbox_mode: legacy_single_owner
colour: red
queue:
  enabled: true
  max_retries: 1
  failure_archive: true
watcher:
  runner_cmd: codex
  runner_model: some-model
"""


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_settings_of_the_older_watcher_are_read(inbox: InboxCommand, tmp_path: Path, by_variable: bool) -> None:
    file = tmp_path / "pv.yaml" if by_variable else inbox.here / "config/prompt-valet.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(CONFIG.format(root=inbox.here))
    place = inbox.here / "inbox/shop/main"
    place.mkdir(parents=True)
    (place / "x.prompt.md").write_text("false")
    if by_variable:
        inbox.env["PV_CONFIG_PATH"] = str(file)

    ran = inbox("inbox", "once", "--agent", "shell", cwd=tmp_path if by_variable else None)

    assert ran.code == 7, ran.stderr
    assert all(word in ran.stderr for word in ("colour", "watcher.runner_model", "queue.enabled"))
    assert list((inbox.here / "failed/acme/shop/main").rglob("x.prompt.md"))


@pytest.mark.parametrize(
    "content", ["a: [", "- a", "queue: 1", "queue: {max_retries: many}", "x" * 70_000, "[" * 60_000]
)
def test_settings_that_cannot_be_read_are_one_line(inbox: InboxCommand, content: str) -> None:
    file = inbox.here / "config/prompt-valet.yaml"
    file.parent.mkdir()
    file.write_text(content)
    inbox.drop("true")

    inbox("inbox", "once", "--agent", "shell").failed(2, "prompt-valet.yaml")


def test_settings_that_came_with_a_repository_are_not_obeyed(inbox: InboxCommand) -> None:
    need("git")
    git("init", "-q", cwd=inbox.here)
    file = inbox.here / "config/prompt-valet.yaml"
    file.parent.mkdir()
    file.write_text("queue: {max_retries: 0}")
    git("add", "config", cwd=inbox.here)
    inbox.drop("true")

    ran = inbox("inbox", "once", "--agent", "shell")

    assert ran.code == 1
    assert "mam trust" in ran.stderr

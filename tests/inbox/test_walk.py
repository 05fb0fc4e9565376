"""The path of a dropped file, step by step: its names, its mirror and its copies."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from mam.errors import BadInput, InboxTaken
from mam.inbox.mirror import TRANSITIONS, mirror_state, transition_path
from mam.inbox.names import Target, is_prompt, parse_target, path_with_state, with_state
from mam.inbox.repair import prune
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.sqlite.store import SqliteStore
from tests.inbox.world import WHERE, World

if TYPE_CHECKING:
    from pathlib import Path


# -- names and paths -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "state", "wanted"),
    [
        ("xyz.prompt.md", "running", "xyz.running.md"),
        ("xyz.running.md", "done", "xyz.done.md"),
        ("foo.txt", "running", "foo.running.txt"),
        ("a.b.prompt.md", "error", "a.b.error.md"),
        ("plain", "running", "plain.running"),
    ],
)
def test_a_state_takes_the_place_of_the_one_before(name: str, state: str, wanted: str) -> None:
    assert with_state(name, state) == wanted


@pytest.mark.parametrize(
    "name",
    [".x.prompt.md.AbC123", ".x.prompt.md.swp", "x.prompt.md~", ".prompt.md", "x.prompt.md.part", "x.md", "4913"],
)
def test_temporary_files_are_no_prompts(name: str) -> None:
    assert not is_prompt(name)


def test_a_path_gives_owner_repository_and_branch() -> None:
    assert parse_target("o/r/b/x.prompt.md", "multi-owner", None, None) == Target(owner="o", repo="r", branch="b")
    assert parse_target("o/r/b/deep/er/x.prompt.md", "multi-owner", None, None).branch == "b"
    assert parse_target("r/b/x.prompt.md", "single-owner", "me", None) == Target(owner="me", repo="r", branch="b")
    assert parse_target("o/r/feature%2Fx/y.prompt.md", "multi-owner", None, None).branch == "feature/x"
    assert Target(owner="o", repo="r", branch="feature/x").path == "o/r/feature%2Fx"


@pytest.mark.parametrize(
    ("rel", "mode"),
    [("o/r/x.prompt.md", "multi-owner"), ("r/x.prompt.md", "single-owner"), ("x.prompt.md", "multi-owner")],
)
def test_an_error_for_a_short_path_shows_the_expected_form(rel: str, mode: str) -> None:
    with pytest.raises(BadInput, match="too short: it belongs in inbox/<"):
        parse_target(rel, mode, "me", None)


@pytest.mark.parametrize("part", ["-rf", "..", "a b", "ä", "x\ny", ".git"])
def test_odd_owners_and_repositories_are_refused(part: str) -> None:
    for rel in (f"{part}/r/b/x.prompt.md", f"o/{part}/b/x.prompt.md"):
        with pytest.raises(BadInput, match="cannot be the name"):
            parse_target(rel, "multi-owner", None, None)


@pytest.mark.parametrize("branch", ["-b", "a..b", "x.lock", "a b", "a~1", "@", "HEAD^", "a:b"])
def test_odd_branches_are_refused(branch: str) -> None:
    with pytest.raises(BadInput, match="cannot be the name of a branch"):
        parse_target(f"o/r/{branch}/x.prompt.md", "multi-owner", None, None)


# -- the way in ------------------------------------------------------------------------------------------------------


def test_a_file_becomes_one_job_and_is_called_running(world: World) -> None:
    world.drop("x.prompt.md", "do it\n")
    inbox = world.open()
    inbox.run_cycle()
    inbox.run_cycle()
    job = world.only_job()
    assert (job.prompt, job.agent, job.agent_session, job.status) == ("do it", "shell", "inbox", "pending")
    assert job.inbox == {"root": str(world.root), "file": f"{WHERE}/x.prompt.md", "owner": "acme", "repo": "shop",
                         "branch": "main"}  # fmt: skip
    assert world.files("inbox") == [f"{WHERE}/x.running.md"]
    assert world.files("processed") == [f"{WHERE}/{job.job_id}/prompt.md"]
    record = world.mirrored(job.job_id)
    assert (record["state"], record["retries"], record["metadata"]["reason"]) == ("queued", 0, "new_prompt")
    assert (record["git_owner"], record["repo_name"], record["branch_name"]) == ("acme", "shop", "main")
    assert record["inbox_rel"] == f"{WHERE}/x.prompt.md"


def test_the_oldest_file_is_the_first_job(world: World) -> None:
    for name, age in (("young", 10), ("old", 1000), ("middle", 100)):
        path = world.drop(f"{name}.prompt.md", name)
        moment = path.stat().st_mtime - age
        os.utime(path, (moment, moment))
    world.open().run_cycle()
    assert [job.prompt for job in world.all_jobs()] == ["old", "middle", "young"]


def test_the_same_name_waits_for_the_one_before_and_is_then_a_job_of_its_own(world: World) -> None:
    """The older watcher never accepted a name twice."""
    inbox = world.open()
    world.drop("x.prompt.md", "first")
    inbox.run_cycle()
    world.drop("x.prompt.md", "second")
    inbox.run_cycle()
    assert [job.prompt for job in world.all_jobs()] == ["first"]
    assert world.files("inbox") == [f"{WHERE}/x.prompt.md", f"{WHERE}/x.running.md"]
    world.registry().complete(world.only_job().job_id)
    inbox.run_cycle()
    inbox.run_cycle()
    assert [job.prompt for job in world.all_jobs()] == ["first", "second"]
    world.registry().complete(world.all_jobs()[1].job_id)
    inbox.run_cycle()
    second = world.all_jobs()[1].job_id[:8]
    assert world.files("finished") == sorted([f"{WHERE}/x.done.md", f"{WHERE}/x.{second}.done.md"])


def test_a_running_file_without_a_row_is_ingested_once(world: World) -> None:
    """The older watcher leaves such a file when it dies."""
    world.drop("x.running.md", "left behind")
    inbox = world.open()
    inbox.run_cycle()
    inbox.run_cycle()
    assert world.only_job().prompt == "left behind"
    assert world.files("inbox") == [f"{WHERE}/x.running.md"]


def test_a_lost_ledger_is_rebuilt_from_the_registry(world: World) -> None:
    world.drop("x.prompt.md", "first")
    world.open().run_cycle()
    world.close()
    for path in (world.root / ".queue").glob("inbox.db*"):
        path.unlink()
    world.steady()
    assert world.only_job().prompt == "first"
    world.registry().complete(world.only_job().job_id)
    world.steady()
    assert world.files("finished") == [f"{WHERE}/x.done.md"]


def test_an_inbox_belongs_to_one_store(world: World, tmp_path: Path) -> None:
    world.open()
    create_files_store(str(tmp_path / "other"))
    store = FilesStore(str(tmp_path / "other"))
    from mam.registry import Registry

    with pytest.raises(InboxTaken, match=f"belongs to the store {world.jobs}"):
        world.open(Registry(store))
    store.close()


# -- the way out -----------------------------------------------------------------------------------------------------


def test_the_outcome_of_a_completed_job_is_written_and_then_archived(world: World) -> None:
    world.settings = world.settings.replace(linger_seconds=3600.0)
    inbox = world.open()
    world.drop("x.prompt.md", "do it\n")
    inbox.run_cycle()
    job_id = world.only_job().job_id
    world.registry().complete(job_id, result="It was easy.")
    inbox.run_cycle([job_id])
    assert world.files("inbox") == [f"{WHERE}/x.done.md"]
    outcome = (world.inbox / WHERE / "x.done.md").read_text()
    assert outcome.startswith("do it\n")
    assert "# Outcome: done" in outcome
    assert "ran in an empty directory" in outcome
    assert f"`mam output {job_id[:8]}`" in outcome
    assert outcome.endswith("## Result\n\nIt was easy.\n")
    record = world.mirrored(job_id)
    assert record["state"] == "succeeded"
    assert os.path.isfile(record["processed_path"])
    world.close()
    world.settings = world.settings.replace(linger_seconds=0.0)
    world.steady()
    assert world.files("inbox") == []
    assert world.files("finished") == [f"{WHERE}/x.done.md"]


def test_a_failed_job_states_the_reason_and_archives_its_prompt_if_asked(tmp_path: Path) -> None:
    world = World(tmp_path, failure_archive=True)
    inbox = world.open()
    world.drop("x.prompt.md", "do it\n")
    inbox.run_cycle()
    job_id = world.only_job().job_id
    world.registry().fail(job_id, reason="no luck")
    inbox.run_cycle()
    outcome = (world.root / "finished" / WHERE / "x.error.md").read_text()
    assert "- why: no luck\n" in outcome
    assert f"`mam retry {job_id[:8]}`" in outcome
    record = world.mirrored(job_id)
    assert (record["state"], record["failure_reason"]) == ("failed_final", "no luck")
    assert record["archived_path"] == str(world.root / "failed" / WHERE / job_id / "x.prompt.md")
    with open(record["archived_path"], encoding="utf-8") as file:
        assert file.read() == "do it\n"
    world.close()


def test_an_outcome_never_overwrites_another_file(world: World) -> None:
    inbox = world.open()
    world.drop("x.prompt.md")
    inbox.run_cycle()
    job_id = world.only_job().job_id
    mine = world.inbox / WHERE / "x.done.md"
    mine.write_text("my own notes")
    world.registry().complete(job_id)
    inbox.run_cycle()
    assert mine.read_text() == "my own notes"
    assert world.files("finished") == [f"{WHERE}/x.{job_id[:8]}.done.md"]


def test_a_prompt_that_was_removed_while_it_ran_comes_back_with_its_outcome(world: World) -> None:
    inbox = world.open()
    world.drop("x.prompt.md", "do it\n")
    inbox.run_cycle()
    (world.inbox / WHERE / "x.running.md").unlink()
    world.registry().complete(world.only_job().job_id)
    inbox.run_cycle()
    assert (world.root / "finished" / WHERE / "x.done.md").read_text().startswith("do it\n")


def test_a_job_that_was_removed_from_the_registry_is_not_waited_for(world: World) -> None:
    inbox = world.open()
    world.drop("x.prompt.md", "do it\n")
    inbox.run_cycle()
    store = world.registry().store
    assert isinstance(store, SqliteStore)
    store._in_transaction(
        lambda: store._rows("delete job", job_id=world.only_job().job_id)
    )  # as an older backup has it
    inbox.run_cycle()
    outcome = (world.root / "finished" / WHERE / "x.error.md").read_text()
    assert outcome.startswith("do it\n")
    assert "no longer in the registry" in outcome


# -- the mirror ------------------------------------------------------------------------------------------------------


def test_every_way_that_is_shown_is_one_that_the_older_table_allows() -> None:
    for before in (None, *TRANSITIONS):
        for after in TRANSITIONS:
            way = transition_path(before, after)
            assert way[-1] == after
            reachable = before is None or before == after or (TRANSITIONS[before] and after != before)
            if reachable and before != after:
                steps = [*([before] if before else []), *way]
                assert all(to in TRANSITIONS[frm] for frm, to in pairwise(steps)), (before, after, way)


def test_a_return_to_the_queue_is_shown_as_a_failure_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = world.open()
    world.drop("x.prompt.md")
    inbox.run_cycle()
    job_id, registry = world.only_job().job_id, world.registry()
    written: list[tuple[str, int]] = []
    from mam.inbox import mirror

    write = mirror._Folder.write

    def note(folder: mirror._Folder, record: dict[str, Any]) -> None:
        written.append((record["state"], record["retries"]))
        write(folder, record)

    monkeypatch.setattr(mirror._Folder, "write", note)
    registry.pick("inbox", owner="me")
    inbox.run_cycle()
    registry.release(job_id)
    inbox.run_cycle()
    registry.pick("inbox", owner="me")
    registry.fail(job_id, reason="git-error", retryable=True)
    inbox.run_cycle()
    assert world.mirrored(job_id)["metadata"]["last_failure"] == "git-error"
    assert written == [("running", 0), ("failed_retryable", 0), ("queued", 1), ("running", 1), ("failed_retryable", 1)]
    registry.cancel(job_id)
    inbox.run_cycle()
    assert written[-1] == ("failed_final", 1)
    assert mirror_state(registry.get(job_id)) == "failed_final"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"job_id": "no"}', "gone", "other state", "left over", "retries"])
def test_a_damaged_mirror_is_repaired_on_start(world: World, damage: str) -> None:
    world.drop("x.prompt.md")
    world.open().run_cycle()
    world.close()
    job_id = world.only_job().job_id
    folder = world.root / ".queue" / "jobs" / job_id
    before = world.mirrored(job_id)
    if damage == "gone":
        (folder / "job.json").unlink()
    elif damage == "other state":
        (folder / "state").write_text("succeeded")
    elif damage == "left over":
        (folder / ".mam-job.json").write_text("half")
    elif damage == "retries":
        (folder / "job.json").write_text((folder / "job.json").read_text().replace('"retries":0', '"retries":true'))
    else:
        (folder / "job.json").write_text(damage)
    world.steady()
    assert world.mirrored(job_id) == before


def test_keep_days_removes_old_jobs_from_mirror_and_copies(world: World) -> None:
    inbox = world.open()
    world.drop("x.prompt.md")
    inbox.run_cycle()
    world.drop("y.prompt.md")
    inbox.run_cycle()
    ended, running = (job.job_id for job in world.all_jobs())
    world.registry().complete(ended)
    inbox.run_cycle()
    later = inbox._now_ms() + 3 * 86_400_000
    assert prune(inbox._mirror, world.settings.jobs_root, str(world.root), later, 0) == 0
    assert prune(inbox._mirror, world.settings.jobs_root, str(world.root), later, 2) == 1
    assert os.listdir(world.settings.jobs_root) == [running]
    assert world.files("processed") == [f"{WHERE}/{running}/prompt.md"]
    assert world.files("finished") == [f"{WHERE}/x.done.md"]


def test_names_beside_each_other() -> None:
    assert path_with_state("a/b/x.prompt.md", "error") == "a/b/x.error.md"


def test_an_outcome_that_could_not_be_written_is_retried(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from mam.inbox import deliver, tree

    inbox = world.open()
    world.drop()
    inbox.run_cycle()
    job_id = world.only_job().job_id
    world.registry().complete(job_id)
    write = tree.write_new

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(deliver, "write_new", refuse)
    inbox.run_cycle({job_id})
    assert any("No space left" in words for words in world.complaints)
    assert world.files("inbox") == [f"{WHERE}/x.running.md"]
    monkeypatch.setattr(deliver, "write_new", write)
    inbox.run_cycle(set())
    assert world.files("finished") == [f"{WHERE}/x.done.md"]


def test_rows_of_a_watcher_that_ended_are_finished_by_another(world: World) -> None:
    stays, goes = world.open(), world.open()
    stays.run_cycle()
    world.drop()
    goes.run_cycle()
    world.registry().complete(world.only_job().job_id)
    goes.close()
    stays.run_cycle(set())
    stays.run_cycle(set())
    assert world.files("finished") == [f"{WHERE}/x.done.md"]

"""The changes of a job reach a checkout whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.talker import Desk, desk_fixture

__all__ = ["desk_fixture"]


def state(desk: Desk) -> tuple[str, str, str]:
    git = desk.repository.git
    return git("rev-parse", "HEAD"), git("status", "--porcelain"), git("for-each-ref", "refs/heads")


def test_a_branch_behind_is_moved_forward_and_the_job_notes_it(desk: Desk) -> None:
    job = desk.run("echo b > b.txt")
    commit = desk.mam("apply", job).line
    assert commit == desk.repository.git("rev-parse", "main")
    assert (desk.path / "b.txt").read_text() == "b\n"
    applied = desk.mam.record(job)["applied"]
    assert (applied["how"], applied["branch"], applied["commit"]) == ("fast-forward", "main", commit)
    assert desk.mam("logs", job).out.count("applied") == 1
    shown = desk.mam("show", job).out
    assert "✓ applied to main by " in shown
    assert "mam apply" not in shown
    again = desk.mam("apply", job)
    assert (again.line, "already" in again.stderr) == (commit, True)
    assert desk.mam.record(job)["applied"] == applied


def test_a_branch_with_new_commits_needs_a_merge_by_the_user(desk: Desk) -> None:
    job = desk.run("echo b > b.txt")
    desk.repository.commit("c.txt", "c\n")
    commit = desk.mam("apply", job).line
    assert desk.files() >= {"a.txt", "b.txt", "c.txt"}
    log = desk.repository.git("log", "-1", "--format=%an|%s|%(trailers:key=Mam-Job,valueonly)|%p", commit)
    assert log.startswith(f"Anna|Merge job {job[:8]}: work|{job}")
    assert len(log.rpartition("|")[2].split()) == 2
    assert desk.repository.git("status", "--porcelain") == ""


def test_a_conflict_changes_nothing_and_names_the_way_on(desk: Desk) -> None:
    job = desk.run("echo theirs > a.txt")
    desk.repository.commit("a.txt", "ours\n")
    before = state(desk)
    desk.mam("apply", job).failed(1, "conflicts with main in a.txt", f"mam continue {job[:8]}", "nothing changed")
    desk.mam("apply", job, "--patch").failed(1, "conflicts with main")
    assert state(desk) == before
    assert desk.mam.record(job)["applied"] is None


def test_patch_leaves_the_changes_staged(desk: Desk) -> None:
    job = desk.run("echo b > b.txt; echo two >> a.txt")
    before = desk.repository.git("rev-parse", "HEAD")
    assert desk.mam("apply", job, "--patch").line == before
    assert desk.repository.git("status", "--porcelain").split("\n") == ["M  a.txt", "A  b.txt"]
    assert desk.mam.record(job)["applied"]["how"] == "staged"


@pytest.mark.parametrize("patch", [(), ("--patch",)])
def test_other_uncommitted_files_stay_and_touched_ones_are_not_overwritten(desk: Desk, patch: tuple[str, ...]) -> None:
    job = desk.run("echo b > b.txt; echo two >> a.txt")
    (desk.path / "b.txt").write_text("mine\n")
    (desk.path / "a.txt").write_text("mine\n")
    before = state(desk)
    desk.mam("apply", job, *patch).failed(1, "a.txt, b.txt would be overwritten")
    assert state(desk) == before
    (desk.path / "b.txt").unlink()
    desk.repository.git("checkout", "-q", "a.txt")
    (desk.path / "sub/deep/file.txt").write_text("mine\n")
    (desk.path / "other.txt").write_text("mine\n")
    assert desk.mam("apply", job, *patch).code == 0
    assert (desk.path / "sub/deep/file.txt").read_text() == "mine\n"


def test_apply_uses_the_branch_that_is_checked_out_in_the_current_directory(desk: Desk, tmp_path: Path) -> None:
    job = desk.run("echo b > b.txt")
    side = tmp_path / "side"
    desk.repository.git("worktree", "add", "-q", "-b", "side", str(side))
    assert desk.mam("apply", job, cwd=side, MAM_STORE=str(desk.path / ".mam/jobs")).code == 0
    assert desk.repository.git("rev-parse", "side") != desk.repository.git("rev-parse", "main")
    assert (side / "b.txt").exists()
    assert desk.mam.record(job)["applied"]["branch"] == "side"


def test_from_the_worktree_of_the_job_it_goes_to_the_users_checkout(desk: Desk) -> None:
    job = desk.run("echo b > b.txt")
    place = Path(desk.mam.record(job)["run"]["place"])
    assert desk.mam("apply", job, cwd=place, MAM_STORE=str(desk.path / ".mam/jobs")).code == 0
    assert (desk.path / "b.txt").exists()


@pytest.mark.parametrize("hindrance", ["detached", "merging", "running", "nothing", "inside a job"])
def test_what_it_cannot_do_is_reported_in_one_line(desk: Desk, hindrance: str) -> None:
    job = desk.run("true" if hindrance == "nothing" else "echo b > b.txt")
    words = {"detached": "git switch", "merging": "a merge is in progress", "nothing": "changed nothing",
             "running": "mam wait", "inside a job": "only a person"}[hindrance]  # fmt: skip
    if hindrance == "detached":
        desk.repository.git("checkout", "-q", "--detach")
    elif hindrance == "merging":
        (desk.path / ".git/MERGE_HEAD").write_text(desk.repository.git("rev-parse", "HEAD"))
    elif hindrance == "running":
        job = desk.queue(job, "true")
    if hindrance == "inside a job":
        desk.mam.env["MAM_SOCKET"] = "/x"
    desk.mam("apply", job).failed(1, words)


def test_a_repeat_completes_what_a_killed_apply_left(desk: Desk) -> None:
    """git has updated index and files, and was killed before it moved the branch."""
    job = desk.run("echo b > b.txt; echo two >> a.txt")
    after = desk.mam.record(job)["run"]["changes"]["after"]
    desk.repository.git("read-tree", "-m", "-u", "HEAD", after)
    assert desk.mam("apply", job).line == after
    assert desk.repository.git("status", "--porcelain") == ""

"""Where a job runs: made whole after any crash, never lost by accident, and obeying no repository's own commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mam.errors import PlaceBroken, PlaceKept, PlaceMissing
from mam.work import git
from mam.work.home import PAGE, Home
from mam.work.places import Place, prepare
from mam.work.removing import Held, places, remove
from mam.work.worktrees import slug
from tests.disks import fill
from tests.unit.jobs import pending
from tests.work.repositories import Repository, job_in, make_repository
from tests.work.support import PATIENCE


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's git settings, and a directory without links in its name."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repo")


@pytest.fixture
def work(tmp_path: Path) -> str:
    return str(tmp_path / "work")


def only(work: str) -> Held:
    (held,) = places(work)
    return held


# -- workdir ---------------------------------------------------------------------------------------------------------


def test_a_workdir_is_where_the_job_says(tmp_path: Path, work: str) -> None:
    place = prepare(job_in(tmp_path, "workdir"), work, {})
    assert place == Place(path=str(tmp_path), kind="workdir")
    assert not os.path.exists(work)


def test_a_link_to_a_workdir_is_followed_once_and_for_all(tmp_path: Path, work: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert prepare(job_in(tmp_path / "link", "workdir"), work, {}).path == str(tmp_path / "real")


def test_a_missing_workdir_lets_the_job_wait(tmp_path: Path, work: str) -> None:
    job = job_in(tmp_path / "gone", "workdir")
    with pytest.raises(PlaceMissing, match="gone is not there"):
        prepare(job, work, {})
    (tmp_path / "gone").mkdir()
    assert prepare(job, work, {}).path == str(tmp_path / "gone")


def test_a_file_is_no_place(tmp_path: Path, work: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PlaceBroken, match="not a directory"):
        prepare(job_in(tmp_path / "file", "workdir"), work, {})
    with pytest.raises(PlaceMissing):
        prepare(job_in(tmp_path / "file/below", "workdir"), work, {})


@pytest.mark.parametrize("workdir", ["relative", "", "/tmp/../etc", "/a\0b"])
def test_a_workdir_that_cannot_be_is_broken(workdir: str, work: str) -> None:
    with pytest.raises(PlaceBroken):
        prepare(pending().replace(workdir=workdir), work, {})


def test_an_old_record_without_a_workdir_runs_where_the_worker_is(
    tmp_path: Path, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = prepare(pending(), work, {})
    assert place.path == str(tmp_path)
    assert place.note is not None
    assert "no directory" in place.note


def test_paths_of_another_host_are_mapped_name_by_name(tmp_path: Path, work: str) -> None:
    (tmp_path / "here/project").mkdir(parents=True)
    (tmp_path / "nearer").mkdir()
    job = pending(workdir="/far/away/project", origin_host="elsewhere", workspace="workdir")
    here = str(tmp_path / "here")
    assert prepare(job, work, {"/far/away": here}).path == f"{here}/project"
    assert prepare(job, work, {"/far/away/": f"{here}/"}).path == f"{here}/project"
    assert prepare(job, work, {"/far/away": here, "/far/away/project": str(tmp_path / "nearer")}).path == str(
        tmp_path / "nearer"
    )
    for mapping in ({}, {"/far/aw": here}, {"/other": here}):
        with pytest.raises(PlaceMissing, match=r"registered on elsewhere.*\[workdirs\]"):
            prepare(job, work, mapping)


def test_paths_of_this_host_are_never_mapped(tmp_path: Path, work: str) -> None:
    job = pending(workdir=str(tmp_path), origin_host=os.uname().nodename, workspace="workdir")
    assert prepare(job, work, {str(tmp_path): "/nowhere"}).path == str(tmp_path)


def test_a_path_that_both_hosts_have_needs_no_mapping(tmp_path: Path, work: str) -> None:
    job = pending(workdir=str(tmp_path), origin_host="elsewhere", workspace="workdir")
    assert prepare(job, work, {}).path == str(tmp_path)


# -- fresh -----------------------------------------------------------------------------------------------------------


def test_a_fresh_directory_is_made_once_and_continued(tmp_path: Path, work: str) -> None:
    job = job_in("/nowhere/at/all", "fresh")
    place = prepare(job, work, {})
    assert (place.kind, os.listdir(place.path)) == ("fresh", [])
    assert os.stat(place.path).st_mode & 0o777 == 0o700
    Path(place.path, "half.txt").write_text("half")
    assert prepare(job.replace(attempt=2), work, {}) == place
    assert os.listdir(place.path) == ["half.txt"]
    held = only(work)
    assert (held.job_id, held.kind, held.dirty, held.path) == (job.job_id, "fresh", True, place.path)
    with pytest.raises(PlaceKept, match="holds files"):
        remove(work, job.job_id, force=False)
    assert remove(work, job.job_id, force=True) is None
    assert places(work) == []
    assert os.listdir(work) == []


def test_an_empty_fresh_directory_goes_without_force(work: str) -> None:
    job = job_in("/nowhere", "fresh")
    prepare(job, work, {})
    remove(work, job.job_id, force=False)
    assert places(work) == []


def test_a_fresh_directory_that_became_a_link_is_not_followed(tmp_path: Path, work: str) -> None:
    job = job_in("/nowhere", "fresh")
    place = prepare(job, work, {})
    os.rmdir(place.path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    os.symlink(tmp_path / "precious", place.path)
    with pytest.raises(PlaceBroken, match="not a directory any more"):
        prepare(job, work, {})


def test_other_users_cannot_prepare_the_work_directory(work: str) -> None:
    os.mkdir(work)
    os.chmod(work, 0o777)
    with pytest.raises(PlaceBroken, match="can be written by others"):
        prepare(job_in("/nowhere", "fresh"), work, {})


# -- worktree --------------------------------------------------------------------------------------------------------


def test_a_worktree_has_its_branch_at_head_and_the_same_subdirectory(repository: Repository, work: str) -> None:
    job = job_in(repository.path / "sub/deep", prompt="Fix the *flaky* login-test!\nand more")
    place = prepare(job, work, {})
    assert place.path == f"{work}/{job.job_id}/worktree/sub/deep"
    assert place.branch == "mam/fix-the-flaky-login-test-and-more-abc12345"
    assert Path(place.path, "file.txt").read_text() == "one\n"
    assert repository.git("rev-parse", "HEAD", cwd=place.path) == repository.git("rev-parse", "main")
    assert repository.git("branch", "--show-current", cwd=place.path) == place.branch
    assert repository.git("status", "--porcelain") == ""


def test_a_new_attempt_continues_with_what_is_there(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    Path(place.path, "half.txt").write_text("half")
    commit = repository.commit("done.txt", "done", cwd=place.path)
    repository.commit("sub/deep/file.txt", "two\n")

    assert prepare(job.replace(attempt=2), work, {}) == place
    assert Path(place.path, "half.txt").read_text() == "half"
    assert repository.git("rev-parse", "HEAD", cwd=place.path) == commit
    assert len(repository.worktrees()) == 2


def test_a_retry_is_another_job_with_a_place_of_its_own(repository: Repository, work: str) -> None:
    first = prepare(job_in(repository.path), work, {})
    second = prepare(job_in(repository.path, job_id="def67890", retry_of="abc12345"), work, {})
    assert first.path != second.path
    assert first.branch != second.branch


def test_ids_that_begin_alike_get_branches_of_their_own(repository: Repository, work: str) -> None:
    names = [prepare(job_in(repository.path, job_id=name), work, {}).branch for name in ("abc12345", "abc12345-2")]
    assert names == ["mam/sort-ten-numbers-abc12345", "mam/sort-ten-numbers-abc12345-2"]


def test_a_worktree_of_a_worktree_belongs_to_the_same_repository(
    repository: Repository, work: str, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    head = repository.commit("there.txt", "x", cwd=tmp_path / "other")
    place = prepare(job_in(tmp_path / "other"), work, {})
    assert repository.git("rev-parse", "HEAD", cwd=place.path) == head
    assert place.path in repository.worktrees()


def test_a_subdirectory_that_the_commit_lacks_is_made(repository: Repository, work: str) -> None:
    (repository.path / "new/untracked").mkdir(parents=True)
    place = prepare(job_in(repository.path / "new/untracked"), work, {})
    assert place.path.endswith("/worktree/new/untracked")
    assert os.listdir(place.path) == []


def test_a_subdirectory_that_is_a_link_in_the_commit_is_not_followed(
    repository: Repository, work: str, tmp_path: Path
) -> None:
    os.symlink(tmp_path, repository.path / "out")
    repository.git("add", "out")
    repository.git("commit", "-qm", "a link")
    os.unlink(repository.path / "out")
    os.mkdir(repository.path / "out")
    with pytest.raises(PlaceBroken, match="by a link"):
        prepare(job_in(repository.path / "out"), work, {})


def test_odd_names_are_kept(tmp_path: Path, work: str) -> None:
    repository = make_repository(tmp_path / "a b\nc'\"$(x)é")
    repository.commit("-dash/new\nline/f", "x")
    place = prepare(job_in(repository.path / "-dash/new\nline"), work, {})
    assert os.listdir(place.path) == ["f"]
    assert not only(work).dirty


def test_what_is_no_repository_is_broken(tmp_path: Path, work: str) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(PlaceBroken, match="not a git repository"):
        prepare(job_in(tmp_path / "plain"), work, {})
    empty = Repository(tmp_path / "empty")
    empty.path.mkdir()
    empty.git("init", "-q")
    with pytest.raises(PlaceBroken, match="no commit yet"):
        prepare(job_in(empty.path), work, {})
    with pytest.raises(PlaceMissing):
        prepare(job_in(tmp_path / "gone"), work, {})


def test_a_bare_repository_inside_a_project_is_not_used(repository: Repository, work: str) -> None:
    repository.git("init", "-q", "--bare", "hidden")
    with pytest.raises(PlaceBroken, match="bare"):
        prepare(job_in(repository.path / "hidden"), work, {})


def test_without_git_it_is_said(repository: Repository, work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlaceBroken, match="git is not on PATH"):
        prepare(job_in(repository.path), work, {})


def test_a_full_disk_is_said_and_gets_better(small_disk: Path, repository: Repository) -> None:
    ballast = fill(small_disk)
    work, job = str(small_disk / "work"), job_in(repository.path)
    with pytest.raises(PlaceBroken, match="No space"):
        prepare(job, work, {})
    ballast.unlink()
    place = prepare(job, work, {})
    assert Path(place.path, "sub/deep/file.txt").read_text() == "one\n"
    remove(work, job.job_id, force=False)
    assert repository.branches() == {"main"}


def test_a_vanished_worktree_is_made_anew_from_its_branch(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    commit = repository.commit("done.txt", "done", cwd=place.path)
    subprocess.run(["rm", "-rf", place.path], check=True)

    again = prepare(job.replace(attempt=2), work, {})
    assert again.path == place.path
    assert again.note is not None
    assert "made anew" in again.note
    assert repository.git("rev-parse", "HEAD", cwd=again.path) == commit


def test_a_vanished_repository_lets_the_job_wait(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    prepare(job, work, {})
    moved = repository.path.with_name("moved")
    repository.path.rename(moved)
    with pytest.raises(PlaceMissing, match="not there"):
        prepare(job, work, {})
    held = only(work)
    assert held.problem is not None
    with pytest.raises(PlaceKept, match="cannot say"):
        remove(work, job.job_id, force=False)
    moved.rename(repository.path)
    assert prepare(job, work, {}).kind == "worktree"


def test_a_worktree_that_git_has_forgotten_is_not_thrown_away(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    Path(place.path, "work.txt").write_text("hours")
    subprocess.run(["rm", "-rf", str(repository.path / ".git/worktrees")], check=True)
    with pytest.raises(PlaceBroken, match="git no longer knows"):
        prepare(job, work, {})
    assert Path(place.path, "work.txt").read_text() == "hours"
    with pytest.raises(PlaceKept):
        remove(work, job.job_id, force=False)
    remove(work, job.job_id, force=True)
    assert places(work) == []


@pytest.mark.parametrize("page", ["", "{", "[]", '{"state": 1}', '{"state": "made", "artifacts": 5}'])
def test_a_spoiled_page_never_costs_the_work(repository: Repository, work: str, page: str) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    Path(place.path, "work.txt").write_text("hours")
    Path(work, job.job_id, PAGE).write_text(page)
    with pytest.raises(PlaceBroken, match="left alone"):
        prepare(job, work, {})
    assert only(work).problem is not None
    with pytest.raises(PlaceKept):
        remove(work, job.job_id, force=False)
    assert Path(place.path, "work.txt").read_text() == "hours"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Fix it", "fix-it"),
        ("  ../../etc/passwd.lock @{-1}", "etc-passwd-lock-1"),
        ("정렬 문제", "job"),
        ("", "job"),
        ("x" * 500, "x" * 40),
        ("a " * 100, "-".join("a" * 20)),
    ],
)
def test_a_slug_is_a_name_that_a_branch_can_have(prompt: str, expected: str) -> None:
    assert slug(prompt) == expected


# -- crashes and company ---------------------------------------------------------------------------------------------

_KILLED_AT = """
import os, signal, sys
from mam.work import git, home
from mam.work.places import prepare
from tests.work.repositories import job_in

count, repository, work = int(sys.argv[1]), sys.argv[2], sys.argv[3]

def counted(function):
    def step(*words, **more):
        global count
        count -= 1
        if count < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*words, **more)
    return step

git.Git._run = counted(git.Git._run)
home.Home.write = counted(home.Home.write)
home.os.mkdir = counted(os.mkdir)
prepare(job_in(repository), work, {})
"""


def test_killed_before_any_step_it_is_whole_the_next_time(repository: Repository, work: str) -> None:
    """The steps are counted by the code itself, so that none is missed when there come to be more."""
    for count in range(100):
        argv = [sys.executable, "-c", _KILLED_AT, str(count), str(repository.path), work]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        place = prepare(job_in(repository.path), work, {})
        assert Path(place.path, "sub/deep/file.txt").read_text() == "one\n"
        assert repository.git("status", "--porcelain", cwd=place.path) == ""
        assert len(repository.worktrees()) == 2
        assert repository.branches() == {"main", place.branch}
        remove(work, "abc12345", force=False)
        assert repository.branches() == {"main"}
        assert repository.worktrees() == [str(repository.path)]
    else:
        pytest.fail("it never came to an end")
    assert count > 10


def _filter_that_waits(repository: Repository, world: Path) -> tuple[Path, Path]:
    """The user's own filter, which stops git in the middle of a checkout until it is told to go on."""
    arrived, go = world / "arrived", world / "go"
    os.mkfifo(arrived)
    os.mkfifo(go)
    repository.commit(".gitattributes", "*.txt filter=slow\n")
    # Only the first one to come waits: `go` is gone when it has been read from.
    script = f"if [ -p {go} ]; then echo x > {arrived}; read line < {go}; rm -f {go}; fi; cat"
    (world / ".gitconfig").write_text(f'[filter "slow"]\n\tsmudge = "{script}"\n\tclean = cat\n')
    return arrived, go


def test_a_git_that_outlives_its_worker_keeps_others_out(repository: Repository, work: str, world: Path) -> None:
    """A worker is killed while its git checks out; git goes on, and nobody works on the directory beside it."""
    arrived, go = _filter_that_waits(repository, world)
    argv = [sys.executable, "-c", _KILLED_AT, "1000", str(repository.path), work]
    with subprocess.Popen(argv) as first:
        assert arrived.read_text() == "x\n"  # git is in the middle of it
        first.kill()
        first.wait(PATIENCE)
    found: list[Place] = []
    second = threading.Thread(target=lambda: found.append(prepare(job_in(repository.path), work, {})))
    second.start()
    second.join(0.3)
    assert second.is_alive(), "it did not wait for the git of the killed worker"
    go.write_text("on\n")
    second.join(PATIENCE)
    assert Path(found[0].path, "sub/deep/file.txt").read_text() == "one\n"
    assert len(repository.worktrees()) == 2


def test_two_workers_that_prepare_the_same_place_get_the_same(repository: Repository, work: str) -> None:
    script = "import sys; from mam.work.places import prepare; from tests.work.repositories import job_in\n"
    script += "print(prepare(job_in(sys.argv[1]), sys.argv[2], {}).path)"
    argv = [sys.executable, "-c", script, str(repository.path), work]
    workers = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    answers = {worker.communicate(timeout=PATIENCE)[0] for worker in workers}
    assert [worker.returncode for worker in workers] == [0] * 6
    assert len(answers) == 1
    assert len(repository.worktrees()) == 2


def test_many_jobs_of_one_repository_at_once(repository: Repository, work: str) -> None:
    found: list[Place] = []
    threads = [
        threading.Thread(
            target=lambda number=number: found.append(prepare(job_in(repository.path, job_id=f"job{number}"), work, {}))
        )
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len({place.path for place in found}) == len({place.branch for place in found}) == 16
    assert len(repository.worktrees()) == 17


# -- hostile repositories --------------------------------------------------------------------------------------------


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that a repository's own command would make."""
    return tmp_path / "canary"


def _look_around(repository: Repository, work: str) -> Place:
    """Everything that mam does with a repository."""
    job = job_in(repository.path)
    place = prepare(job, work, {})
    places(work)
    Path(place.path, "sub/deep/file.txt").write_text("longer than before\n")
    places(work)
    with pytest.raises(PlaceKept):
        remove(work, job.job_id, force=False)
    return place


def test_hooks_are_not_run(repository: Repository, work: str, canary: Path) -> None:
    names = "post-checkout post-index-change reference-transaction pre-auto-gc fsmonitor-watchman post-rewrite"
    for directory in (repository.path / ".git/hooks", repository.path / "hooks"):
        directory.mkdir(exist_ok=True)
        for name in names.split():
            (directory / name).write_text(f"#!/bin/sh\necho {name} >> {canary}\n")
            (directory / name).chmod(0o755)
    _look_around(repository, work)
    assert not canary.exists()
    repository.git("config", "core.hooksPath", str(repository.path / "hooks"))
    remove(work, "abc12345", force=True)
    _look_around(repository, work)
    remove(work, "abc12345", force=True)
    assert not canary.exists()


def test_commands_in_the_configuration_are_not_run(repository: Repository, work: str, canary: Path) -> None:
    command = f"touch {canary}; cat"
    repository.commit(".gitattributes", "* filter=evil diff=evil\n*.md filter=a=b\n")
    for key in (
        "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy",
        "diff.external", "filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "credential.helper",
        "alias.status", "alias.worktree", "pager.status", "gpg.program", "filter.a=b.smudge",
    ):  # fmt: skip
        repository.git("config", key, f"!{command}" if key.startswith("alias") else command)
    repository.git("config", "filter.evil.required", "true")
    repository.git("config", "core.untrackedCache", "true")
    (repository.path / "a.md").write_text("x")
    _look_around(repository, work)
    remove(work, "abc12345", force=True)
    assert not canary.exists()


def test_commands_in_included_and_worktree_configuration_are_not_run(
    repository: Repository, work: str, canary: Path
) -> None:
    repository.commit(".gitattributes", "* filter=evil\n*.txt filter=worse\n")
    included = repository.path / "included"
    included.write_text(f'[Filter "evil"]\n\tSMUDGE = touch {canary}; cat\n\tclean = touch {canary}; cat\n')
    repository.git("config", "include.path", str(included))
    repository.git("config", "extensions.worktreeConfig", "true")
    repository.git("config", "--worktree", "filter.worse.smudge", f"touch {canary}; cat")
    place = _look_around(repository, work)
    # What the agent itself adds where only its own worktree looks.
    repository.git("config", "--worktree", "filter.worse.clean", f"touch {canary}; cat", cwd=place.path)
    repository.git("config", "--worktree", "core.fsmonitor", f"touch {canary}", cwd=place.path)
    assert only(work).dirty
    assert not canary.exists()


def test_the_repository_of_another_user_is_left_alone(repository: Repository, work: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a directory away needs root")
    os.chown(repository.path, 12345, 12345)
    os.chown(repository.path / ".git", 12345, 12345)
    with pytest.raises(PlaceBroken, match="dubious ownership"):
        prepare(job_in(repository.path), work, {})


def test_a_configuration_that_points_elsewhere_is_refused(repository: Repository, work: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    repository.git("config", "core.worktree", str(tmp_path / "home"))
    with pytest.raises(PlaceBroken):
        prepare(job_in(repository.path), work, {})


def test_a_filter_process_is_not_run_either(repository: Repository, work: str, canary: Path) -> None:
    repository.commit(".gitattributes", "* filter=evil\n")
    repository.git("config", "filter.evil.process", f"touch {canary}")
    repository.git("config", "filter.evil.required", "true")
    _look_around(repository, work)
    assert not canary.exists()


def test_the_users_own_filters_are_run(repository: Repository, work: str, tmp_path: Path) -> None:
    repository.commit(".gitattributes", "*.txt filter=upper\n")
    (tmp_path / ".gitconfig").write_text('[filter "upper"]\n\tsmudge = tr a-z A-Z\n\tclean = tr A-Z a-z\n')
    place = prepare(job_in(repository.path), work, {})
    assert Path(place.path, "sub/deep/file.txt").read_text() == "ONE\n"
    assert not only(work).dirty


def test_an_agents_own_git_directory_is_not_obeyed(repository: Repository, work: str, canary: Path) -> None:
    """The `.git` of a worktree is a file in the agent's reach; what it leads to by then does not count."""
    place = prepare(job_in(repository.path), work, {})
    evil = Repository(Path(place.path, "evil"))
    evil.path.mkdir()
    evil.git("init", "-q")
    evil.git("config", "core.fsmonitor", f"touch {canary}")
    Path(place.path, ".git").unlink()
    Path(place.path, ".git").write_text(f"gitdir: {evil.path}/.git\n")
    assert only(work).dirty
    prepare(job_in(repository.path), work, {})
    assert not canary.exists()


def test_a_submodule_is_not_entered_and_not_lost(
    repository: Repository, work: str, canary: Path, tmp_path: Path
) -> None:
    inner = make_repository(tmp_path / "inner")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "module")
    repository.git("commit", "-qm", "with a submodule")
    place = prepare(job_in(repository.path), work, {})
    assert place.note is not None
    assert "submodules" in place.note
    assert not only(work).dirty
    repository.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", cwd=place.path)
    module = Path(place.path, "module")
    repository.git("config", "core.fsmonitor", f"touch {canary}", cwd=module)
    (module / "sub/deep/file.txt").write_text("changed inside\n")
    assert only(work).dirty
    assert not canary.exists()


def test_variables_of_git_are_not_inherited(
    repository: Repository, work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "broken")
    place = prepare(job_in(repository.path), work, {})
    assert place.path in repository.worktrees()
    assert not only(work).dirty


def test_a_git_of_the_repository_itself_is_not_used(
    repository: Repository, work: str, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.path / "git").write_text(f"#!/bin/sh\ntouch {canary}\n")
    (repository.path / "git").chmod(0o755)
    monkeypatch.chdir(repository.path)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    prepare(job_in(repository.path), work, {})
    assert not canary.exists()


def test_a_git_that_hangs_is_ended_with_what_it_started(repository: Repository, world: Path) -> None:
    arrived, _ = _filter_that_waits(repository, world)
    heard: list[str] = []
    listener = threading.Thread(target=lambda: heard.append(arrived.read_text()))
    listener.start()
    with pytest.raises(git.GitFailed, match="not done within"):
        git.discover(str(repository.path)).text("worktree", "add", str(world / "tree"), "-b", "x", seconds=2.0)
    listener.join(PATIENCE)
    assert heard == ["x\n"]


def test_a_git_that_says_too_much_is_ended(repository: Repository) -> None:
    with pytest.raises(git.GitFailed, match="too much"):
        git.discover(str(repository.path)).text("ls-files", limit=3)


# -- removing --------------------------------------------------------------------------------------------------------


def test_a_clean_worktree_goes_with_its_branch(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    prepare(job, work, {})
    held = only(work)
    assert (held.kind, held.dirty, held.unpushed, held.problem) == ("worktree", False, 0, None)
    assert remove(work, job.job_id, force=False) is None
    assert repository.branches() == {"main"}
    assert repository.worktrees() == [str(repository.path)]
    assert os.listdir(work) == []


@pytest.mark.parametrize("change", ["untracked", "edited", "deleted", "staged"])
def test_a_dirty_worktree_is_kept(repository: Repository, work: str, change: str) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    file = Path(place.path, "sub/deep/file.txt")
    match change:
        case "untracked":
            Path(place.path, "new.txt").write_text("x")
        case "edited":
            file.write_text("two\n")
        case "deleted":
            file.unlink()
        case "staged":
            file.write_text("two\n")
            repository.git("add", ".", cwd=place.path)
    assert only(work).dirty
    with pytest.raises(PlaceKept, match=r"not committed.*--force"):
        remove(work, job.job_id, force=False)
    assert os.path.isdir(place.path)
    assert remove(work, job.job_id, force=True) is None
    assert repository.branches() == {"main"}


def test_commits_that_are_nowhere_else_survive_even_force(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    commit = repository.commit("done.txt", "done", cwd=place.path)
    assert (only(work).dirty, only(work).unpushed) == (False, 1)
    with pytest.raises(PlaceKept, match="1 of its commits"):
        remove(work, job.job_id, force=False)
    note = remove(work, job.job_id, force=True)
    assert note is not None
    assert "was kept" in note
    assert repository.git("rev-parse", place.branch or "") == commit
    assert repository.worktrees() == [str(repository.path)]


def test_commits_that_were_merged_or_pushed_need_no_force(repository: Repository, work: str, tmp_path: Path) -> None:
    for job_id, how in (("merged01", "merge"), ("pushed01", "push")):
        job = job_in(repository.path, job_id=job_id)
        place = prepare(job, work, {})
        repository.commit(f"{how}.txt", "done", cwd=place.path)
        if how == "merge":
            repository.git("merge", "-q", str(place.branch))
        else:
            repository.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
            repository.git("remote", "add", "origin", str(tmp_path / "remote.git"))
            repository.git("push", "-q", "-u", "origin", str(place.branch), cwd=place.path)
        assert only(work).unpushed == 0
        assert remove(work, job_id, force=False) is None
        assert repository.branches() == {"main"}
        assert f'branch "{place.branch}"' not in (repository.path / ".git/config").read_text()


def test_commits_on_no_branch_count_too(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    repository.git("checkout", "-q", "--detach", cwd=place.path)
    repository.commit("loose.txt", "x", cwd=place.path)
    assert only(work).unpushed == 1


def test_an_ignored_artifact_is_not_lost(repository: Repository, work: str) -> None:
    repository.commit(".gitignore", "out/\n")
    job = job_in(repository.path / "sub", artifacts=["out/report.md"])
    place = prepare(job, work, {})
    assert not only(work).dirty
    Path(place.path, "out").mkdir()
    Path(place.path, "out/other.tmp").write_text("x")
    assert not only(work).dirty
    Path(place.path, "out/report.md").write_text("what it was all for")
    assert only(work).dirty


def test_what_an_agent_locked_away_is_removed_and_links_are_not_followed(
    repository: Repository, work: str, tmp_path: Path
) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    (tmp_path / "precious").chmod(0o750)
    Path(place.path, "link").symlink_to(tmp_path / "precious")
    Path(place.path, "locked/in").mkdir(parents=True)
    Path(place.path, "locked/in/file").write_text("x")
    Path(place.path, "locked/in").chmod(0)
    Path(place.path, "locked").chmod(0o500)
    remove(work, job.job_id, force=True)
    assert places(work) == []
    assert (tmp_path / "precious/file").read_text() == "x"
    assert (tmp_path / "precious").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_worktree_that_became_something_else_is_refused_and_can_be_cleared(
    repository: Repository, work: str, tmp_path: Path, kind: str
) -> None:
    job = job_in(repository.path)
    place = prepare(job, work, {})
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    subprocess.run(["rm", "-rf", place.path], check=True)
    if kind == "link":
        os.symlink(tmp_path / "precious", place.path)
    else:
        Path(place.path).write_text("x")
    with pytest.raises(PlaceBroken, match="not a directory"):
        prepare(job, work, {})
    with pytest.raises(PlaceKept):
        remove(work, job.job_id, force=False)
    remove(work, job.job_id, force=True)
    assert places(work) == []
    assert repository.worktrees() == [str(repository.path)]
    assert (tmp_path / "precious/file").read_text() == "x"


_REMOVED_AT = (
    _KILLED_AT.replace(
        "prepare(job_in(repository), work, {})", "removing.remove(work, 'abc12345', force=False)"
    ).replace("from mam.work import git, home", "from mam.work import git, home, removing")
    + """
"""
)


def test_a_removal_that_was_cut_off_is_finished(repository: Repository, work: str) -> None:
    script = _REMOVED_AT.replace(
        "home.os.mkdir = counted(os.mkdir)", "removing.remove_tree = counted(home.remove_tree)"
    )
    for count in range(100):
        prepare(job_in(repository.path), work, {})
        argv = [sys.executable, "-c", script, str(count), str(repository.path), work]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        if count % 2:  # either it is removed again, or the job comes back
            assert Path(prepare(job_in(repository.path), work, {}).path, "sub/deep/file.txt").exists()
        remove(work, "abc12345", force=False)
        assert places(work) == []
        assert repository.worktrees() == [str(repository.path)]
        assert repository.branches() == {"main"}
    else:
        pytest.fail("it never came to an end")
    assert count > 5


def test_there_is_nothing_to_remove(work: str) -> None:
    with pytest.raises(PlaceKept, match="none on this host"):
        remove(work, "abc12345", force=True)
    assert places(work) == []


def test_strangers_in_the_work_directory_are_left_alone(work: str, tmp_path: Path) -> None:
    os.mkdir(work)
    for name in ("not an id", ".hidden", "abc12345"):
        Path(work, name).mkdir()
    Path(work, "file").write_text("x")
    assert places(work) == []
    assert Home(work, "abc12345").read() is None

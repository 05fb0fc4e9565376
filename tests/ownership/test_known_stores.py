"""Known stores: git does not run while nothing has changed, and files that git brings later are ignored."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.cli.command import Mam, finish
from tests.ownership.repositories import EVIL, cloned, committed, git, repository, shell_job

WORK = ("worker", "-s", "shell", "--drain")


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "it-ran"


@pytest.fixture
def upstream(mam: Mam) -> Path:
    """Cloned as the project, in which the user has registered a job of the user's own."""
    made = repository(mam.home / "upstream")
    cloned(mam, made)
    mam.register("true", "--key", "own")
    return made


def own_status(mam: Mam) -> dict[str, str]:
    return {job["job_id"]: job["status"] for job in mam("list", "--json").json}


def bring(upstream: Path, name: str, content: str) -> None:
    (upstream / name).parent.mkdir(parents=True, exist_ok=True)
    (upstream / name).write_text(content)
    committed(upstream)


# -- a pull ----------------------------------------------------------------------------------------------------------


def test_a_pull_that_adds_a_record_runs_nothing(mam: Mam, upstream: Path, mark: Path) -> None:
    bring(upstream, f".mam/jobs/{EVIL}.json", shell_job(mark))
    git("pull", "-q", cwd=mam.here)
    ran = mam(*WORK)
    assert ran.code == 0, ran.stderr
    assert list(own_status(mam).values()) == ["completed"]
    for words in (("get", EVIL), ("status", EVIL), ("publish", EVIL, "progress"), ("retry", EVIL)):
        assert mam(*words).code == 1
    assert not mark.exists()
    assert f"{EVIL}.json: is not in the registry" in mam("doctor").out
    mam("trust", ".mam/jobs")
    assert mam(*WORK).code == 0
    assert not mark.exists(), "what the user trusts is the store, and a record file still needs `mam adopt`"


def test_a_pull_under_a_worker_that_waits_runs_nothing(mam: Mam, upstream: Path, mark: Path) -> None:
    """Git writes the record before the index that names it. The worker ends by the user's job, which comes after."""
    worker = mam.start("worker", "-s", "shell")
    assert mam("wait", *own_status(mam)).code == 0
    for number in range(5):
        job_id = f"e0000000-0000-4000-8000-00000000000{number}"
        bring(upstream, f".mam/jobs/{job_id}.json", shell_job(mark, job_id))
        for filler in range(400):
            (upstream / f"filler-{number}-{filler}").write_text("x")
        committed(upstream)
        git("pull", "-q", cwd=mam.here)
    assert mam("wait", mam.register("true")).code == 0
    worker.terminate()
    assert finish(worker).code == 0
    assert not mark.exists()
    assert sorted(own_status(mam).values()) == ["completed", "completed"]


WAYS = {
    "a checkout": ["checkout -q evil"],
    "a detached checkout": ["checkout -q --detach origin/evil"],
    "a merge": ["merge -q origin/evil"],
    "a rebase": ["rebase -q origin/evil"],
    "a cherry-pick": ["cherry-pick origin/evil"],
    "a reset": ["reset -q --hard origin/evil"],
    "a restore": ["restore --source origin/evil --staged --worktree ."],
    "a patch": ["format-patch -q -1 -o patches origin/evil", "am -q patches/0001-all-of-it.patch"],
    "a stash": ["checkout -q evil", "rm -q -r --cached .mam", "stash -q -a", "checkout -q -f main", "stash pop -q"],
    "a sparse checkout that grows": [
        "sparse-checkout set --cone --sparse-index docs", "merge -q origin/evil", "sparse-checkout disable",
    ],
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_record_that_git_brings_in_another_way_runs_nothing(mam: Mam, upstream: Path, mark: Path, way: str) -> None:
    git("checkout", "-q", "-b", "evil", cwd=upstream)
    bring(upstream, f".mam/jobs/{EVIL}.json", shell_job(mark))
    git("fetch", "-q", cwd=mam.here)
    for words in WAYS[way]:
        git(*words.split(), cwd=mam.here)
    assert (mam.here / f".mam/jobs/{EVIL}.json").exists()
    ran = mam(*WORK)
    assert ran.code == 0 or "mam trust" in ran.stderr, ran.stderr
    mam("register", "x", "--agent", "shell")
    mam(*WORK)
    mam("retry", EVIL)
    assert not mark.exists()


def test_a_prompt_that_appears_while_git_is_at_work_waits_for_the_index(mam: Mam, upstream: Path) -> None:
    lock, inbox = mam.here / ".git/index.lock", mam.here / ".mam/inbox"
    inbox.mkdir()
    lock.touch()
    for name in ("evil", "own"):
        (inbox / f"{name}.prompt.md").write_text(name)
    once = mam.start("inbox", "once", "--mode", "flat", "--agent", "shell", "--concurrency", "0")
    assert once.stderr is not None
    assert b"its files wait" in once.stderr.readline()
    lock.rename(mam.here / ".git/lock.aside")
    git("add", "-f", str(inbox / "evil.prompt.md"), cwd=mam.here)
    assert finish(once).code == 1
    assert sorted(job["prompt"] for job in mam("list", "--json").json) == ["own", "true"]


def test_a_pull_that_replaces_a_known_record_runs_nothing(mam: Mam, upstream: Path, mark: Path) -> None:
    [own] = own_status(mam)
    bring(upstream, f".mam/jobs/{own}.json", shell_job(mark, own))
    git("pull", "-q", cwd=mam.here)
    mam(*WORK)
    assert not mark.exists()


def test_a_pull_that_replaces_what_the_store_keeps_for_itself(mam: Mam, upstream: Path) -> None:
    bring(upstream, ".mam/jobs/.store/journal.log", "rubbish")
    git("pull", "-q", cwd=mam.here)
    mam("list").failed(1, "mam trust", ".store/journal.log")


def test_a_pull_that_replaces_a_database(mam: Mam, upstream: Path, mark: Path) -> None:
    (mam.here / ".git/info/exclude").write_text("*\n")
    here, there = (f"sqlite://{place}/jobs.db" for place in (mam.here, upstream))
    for store in (here, there):
        assert mam("register", f"touch {mark}", "--agent", "shell", "--store", store).code == 0
    committed(upstream)
    git("pull", "-q", cwd=mam.here)
    mam(*WORK, "--store", here).failed(1, "git tracks")
    assert not mark.exists()


# -- what else git can do --------------------------------------------------------------------------------------------


def test_a_store_that_is_tracked_later(mam: Mam, upstream: Path) -> None:
    assert mam("list").code == 0
    git("add", "-f", ".mam/jobs/.store", cwd=mam.here)
    mam("list").failed(1, "git tracks")
    git("rm", "-q", "-r", "--cached", ".mam", cwd=mam.here)
    assert mam("list").code == 0


def test_a_submodule_that_brings_a_store(mam: Mam, mark: Path) -> None:
    part = repository(mam.home / "part")
    bring(part, f".mam/jobs/{EVIL}.json", shell_job(mark))
    upstream = repository(mam.home / "upstream")
    git("submodule", "add", "-q", str(part), "sub", cwd=upstream)
    git("submodule", "add", "-q", str(part), ".mam", cwd=upstream)
    committed(upstream)
    here = cloned(mam, upstream, "--recurse-submodules")
    assert (here / "sub/.git").is_file()
    mam(*WORK, cwd=here / "sub").failed(1, f"mam trust {here}/sub/.mam/jobs")
    mam(*WORK, "--store", ".mam/.mam/jobs").failed(1, f"mam trust {here}/.mam/.mam/jobs")
    assert not mark.exists()


def test_a_store_of_ones_own_in_a_submodule(mam: Mam) -> None:
    part = repository(mam.home / "part")
    upstream = repository(mam.home / "upstream")
    git("submodule", "add", "-q", str(part), "sub", cwd=upstream)
    here = cloned(mam, committed(upstream), "--recurse-submodules")
    assert mam("register", "x", "--agent", "shell", cwd=here / "sub").code == 0
    assert mam("register", "x", "--agent", "shell", "--store", "sub/.mam/jobs").code == 0


def test_a_nested_repository_does_not_hide_what_the_outer_one_brings(mam: Mam, mark: Path) -> None:
    upstream = repository(mam.home / "upstream")
    bring(upstream, f"sub/.mam/jobs/{EVIL}.json", shell_job(mark))
    here = cloned(mam, upstream)
    git("init", "-q", "sub", cwd=here)
    mam(*WORK, cwd=here / "sub").failed(1, f"mam trust {here}/sub/.mam/jobs")


def test_a_worktree_of_a_branch_that_brings_a_store(mam: Mam, upstream: Path, mark: Path) -> None:
    git("checkout", "-q", "-b", "evil", cwd=upstream)
    bring(upstream, f".mam/jobs/{EVIL}.json", shell_job(mark))
    git("fetch", "-q", cwd=mam.here)
    tree = mam.home / "tree"
    git("worktree", "add", "-q", str(tree), "origin/evil", cwd=mam.here)
    mam(*WORK, cwd=tree).failed(1, f"mam trust {tree}/.mam/jobs")
    assert not mark.exists()


def test_a_worktree_without_its_repository_is_rejected(mam: Mam, upstream: Path, mark: Path) -> None:
    """As in a container with only the worktree: without its repository, the tracked files are unknown."""
    bring(upstream, f"sub/.mam/jobs/{EVIL}.json", shell_job(mark))
    tree = mam.home / "tree"
    git("worktree", "add", "-q", str(tree), cwd=upstream)
    shutil.rmtree(upstream)
    mam(*WORK, cwd=tree / "sub").failed(1, "git cannot be asked", f"mam trust {tree}/sub/.mam/jobs")
    assert mam("register", "x", "--agent", "shell", cwd=tree).code == 0
    assert mam("list", cwd=tree).code == 0


def test_a_repository_of_the_whole_home_is_asked_too(mam: Mam, mark: Path) -> None:
    upstream = repository(mam.home / "upstream")
    bring(upstream, f"work/deep/.mam/jobs/{EVIL}.json", shell_job(mark))
    here = cloned(mam, upstream)
    mam(*WORK, cwd=here / "work/deep").failed(1, f"came with the repository {here}")


def test_names_that_are_patterns_to_git(mam: Mam, mark: Path) -> None:
    upstream = repository(mam.home / "upstream")
    name = ":(exclude)[x]*"
    bring(upstream, f"{name}/.mam/jobs/{EVIL}.json", shell_job(mark))
    here = cloned(mam, upstream)
    mam(*WORK, cwd=here / name).failed(1, "git tracks")
    (here / "[y]").mkdir()
    assert mam("register", "x", "--agent", "shell", "--store", f"{here}/[y]/jobs").code == 0


def test_another_case_is_another_directory_where_the_file_system_knows_case(mam: Mam, mark: Path) -> None:
    upstream = repository(mam.home / "upstream")
    bring(upstream, f".MAM/jobs/{EVIL}.json", shell_job(mark))
    here = cloned(mam, upstream)
    if (here / ".mam").exists():
        mam("list").failed(1, "git tracks")
    else:
        assert mam.status(mam.register()) == "pending"


def test_an_index_that_git_cannot_read(mam: Mam, upstream: Path) -> None:
    (mam.here / ".git/index").write_bytes(b"not an index at all")
    mam("list").failed(1, "git cannot be asked", "mam trust")


def test_without_git_a_known_store_is_used_and_an_unknown_one_is_not(mam: Mam, upstream: Path) -> None:
    assert mam("list", PATH=str(mam.home)).code == 0
    shutil.rmtree(mam.home / ".local/state/mam/owned")
    mam("list", PATH=str(mam.home)).failed(1, "git is not on PATH")


def test_git_runs_nothing_of_the_repository(mam: Mam, upstream: Path, mark: Path) -> None:
    script = mam.home / "evil"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "pager.ls-files", "core.sshCommand", "alias.ls-files"):
        git("config", setting, str(script), cwd=mam.here)
    (mam.here / "new").write_text("x")
    git("-c", "core.fsmonitor=false", "add", "new", cwd=mam.here)
    assert mam("list").code == 0
    assert not mark.exists()


def test_the_environment_does_not_turn_git_elsewhere(mam: Mam, upstream: Path, mark: Path) -> None:
    other = repository(mam.home / "other")
    bring(upstream, ".mam/jobs/.store/journal.log", "rubbish")
    git("pull", "-q", cwd=mam.here)
    ran = mam("list", GIT_DIR=f"{other}/.git", GIT_INDEX_FILE=f"{other}/.git/index", GIT_LITERAL_PATHSPECS="1")
    ran.failed(1, "git tracks")


# -- what is remembered ----------------------------------------------------------------------------------------------


def asked(mam: Mam, tmp_path: Path, *words: str) -> int:
    """How often git was started by a command."""
    count = tmp_path / "asked"
    count.write_text("")
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "git").write_text(f'#!/bin/sh\necho >> {count}\nexec {shutil.which("git")} "$@"\n')
    (folder / "git").chmod(0o755)
    ran = mam(*words, PATH=f"{folder}:{os.environ['PATH']}")
    assert ran.code == 0, ran.stderr
    return len(count.read_text())


def test_git_is_asked_only_when_an_index_has_changed(mam: Mam, upstream: Path, tmp_path: Path) -> None:
    """The store that mam made is known at once."""
    assert asked(mam, tmp_path, "list") == 0
    (mam.here / "new").write_text("x")
    git("add", "new", cwd=mam.here)
    assert asked(mam, tmp_path, "list") == 1
    assert asked(mam, tmp_path, "heartbeat", mam("pick", "-s", "shell").line) == 0


def test_a_file_that_the_repository_brings_is_no_memory_of_ours(mam: Mam, upstream: Path, mark: Path) -> None:
    """Only the user's state counts, and only if no other user can write it."""
    owned = mam.home / ".local/state/mam/owned"
    assert stat.S_IMODE(owned.stat().st_mode) == 0o700
    git("add", "-f", ".mam/jobs/.store", cwd=mam.here)
    mam("list").failed(1, "git tracks")
    [memory] = owned.iterdir()
    assert b"jobs" in memory.read_bytes()
    owned.chmod(0o777)
    git("rm", "-q", "-r", "--cached", ".mam", cwd=mam.here)
    assert mam("list").code == 0


def test_hot_verbs_import_nothing_for_the_check(mam: Mam, upstream: Path) -> None:
    code = (
        "import sys; from mam.__main__ import run; run(['status', sys.argv[1]]); print(*sys.modules, file=sys.stderr)"
    )
    import subprocess

    [own] = own_status(mam)
    ran = subprocess.run(
        [sys.executable, "-c", code, own], cwd=mam.here, env=mam.env, capture_output=True, text=True, check=True
    )
    loaded = set(ran.stderr.split())
    assert "mam.location.ownership" in loaded
    assert not loaded & {"subprocess", "mam.config.trust", "mam.machine.environment"}


# -- owners and modes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
@pytest.mark.parametrize("place", [".mam", ".mam/jobs", ".hermes"])
def test_a_directory_that_others_can_write_is_refused(mam: Mam, mark: Path, mode: int, place: str) -> None:
    jobs = mam.here / place if place.endswith("jobs") else mam.here / place / "jobs"
    jobs.mkdir(parents=True)
    (jobs / f"{EVIL}.json").write_text(shell_job(mark))
    (mam.here / place).chmod(mode)
    for words in (WORK, ("register", "x", "--agent", "shell")):
        mam(*words).failed(9, f"chmod go-w {mam.here}/{place}")
    assert not mark.exists()
    (mam.here / place).chmod(mode & ~0o1022)
    assert mam(*WORK).code == 0
    assert mark.exists()


def test_no_store_is_made_in_a_directory_that_others_can_write(mam: Mam) -> None:
    (mam.here / ".mam").mkdir()
    (mam.here / ".mam").chmod(0o777)
    for words in (
        ("init",),
        ("register", "x", "--agent", "shell"),
        ("init", "--store", f"sqlite://{mam.here}/.mam/x.db"),
    ):
        mam(*words).failed(9, f"chmod go-w {mam.here}/.mam")
    assert list((mam.here / ".mam").iterdir()) == []


def test_settings_in_a_directory_that_others_can_write_do_not_count(mam: Mam) -> None:
    (mam.here / ".mam").mkdir()
    (mam.here / ".mam/config.toml").write_text("lock_wait_seconds = 77\n")
    before = mam("config", "get", "lock_wait_seconds").line
    (mam.here / ".mam").chmod(0o777)
    ran = mam("config", "get", "lock_wait_seconds", "--store", str(mam.home / "jobs"))
    assert before == "77"
    assert ran.line != "77"
    assert "chmod go-w" in ran.stderr


needs_root = pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="giving files away needs root")


@needs_root
@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_a_store_of_another_user_needs_approval(mam: Mam, mark: Path, kind: str) -> None:
    path = mam.here / "theirs"
    store = str(path) if kind == "files" else f"sqlite://{path}"
    assert mam("register", f"touch {mark}", "--agent", "shell", "--store", store).code == 0
    for file in (path, *path.rglob("*"), *mam.here.glob("theirs-*")):
        os.chown(file, 12345, 12345)
    mam(*WORK, "--store", store).failed(1, "another user", f"mam trust {path}")
    assert not mark.exists()
    assert mam("trust", str(path)).line == str(path)
    ran = mam(*WORK, "--store", store)
    assert ran.code == 0, ran.stderr
    assert mark.exists()


@needs_root
def test_a_link_of_another_user(mam: Mam, tmp_path: Path) -> None:
    mam("init", "--store", str(tmp_path / "real"))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    mam("list", "--store", str(link)).failed(1, "a link of another user")

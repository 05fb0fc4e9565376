"""Where the store is: flags, environment, settings, directories upward, git worktrees."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import Mam
from tests.needs import need


def git(*words: str, cwd: Path) -> str:
    need("git")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *identity, *words], cwd=cwd, check=True, capture_output=True, text=True).stdout


def repository(path: Path) -> Path:
    path.mkdir(parents=True)
    git("init", cwd=path)
    git("commit", "--allow-empty", "-m", "first", cwd=path)
    return path


def test_only_init_and_register_make_a_store(mam: Mam) -> None:
    for words in (("list",), ("get", "x"), ("status", "x"), ("pick", "-s", "x"), ("heartbeat", "x"), ("complete", "x"),
                  ("fail", "x", "--reason", "y"), ("release", "x"), ("cancel", "x"), ("retry", "x"), ("wait", "x"),
                  ("result", "x"), ("explain", "x"), ("publish", "x", "progress")):  # fmt: skip
        mam(*words).failed(9, "mam init")
    mam("logs", "x").failed(1, "x")
    assert mam("logs", "--list").out == ""
    assert list(mam.here.iterdir()) == []


def test_init_creates_a_store_once(mam: Mam) -> None:
    ran = mam("init")
    assert ran.line == f"{mam.here}/.mam/jobs"
    assert "created a store" in ran.stderr
    assert (mam.here / ".mam/.gitignore").read_text() == "*\n"
    again = mam("init", "--json")
    assert again.json == {"store": f"{mam.here}/.mam/jobs", "made": False}
    assert "already" in again.stderr
    (mam.here / "below").mkdir()
    assert "--store .mam/jobs" in mam("init", cwd=mam.here / "below").stderr
    assert mam("init", "--store", ".mam/jobs", cwd=mam.here / "below").line == f"{mam.here}/below/.mam/jobs"


def test_a_gitignore_is_never_overwritten_nor_put_elsewhere(mam: Mam) -> None:
    (mam.here / ".mam").mkdir()
    (mam.here / ".mam/.gitignore").write_text("mine\n")
    mam("init")
    assert (mam.here / ".mam/.gitignore").read_text() == "mine\n"
    mam("init", "--store", "plain/jobs")
    assert not (mam.here / "plain/.gitignore").exists()


def test_git_sees_no_store_wherever_it_is(mam: Mam) -> None:
    """A store, its secrets and its audit log; the rest of the directory stays the user's."""
    git("init", "-q", cwd=mam.here)
    for words in (
        ("--registry-dir", ".hermes/jobs"), ("--registry-dir", "q/jobs"), ("--registry-dir", "top"),
        ("--store", f"sqlite://{mam.here}/db/jo[b]s.db"),
    ):  # fmt: skip
        assert mam("register", "x", "--agent", "a", "--sign", *words).line
    (mam.here / "q/mine.txt").write_text("mine")
    (mam.here / "db/mine.db").write_text("mine")

    seen = git("status", "--porcelain", "--untracked-files=all", cwd=mam.here).splitlines()

    assert sorted(line[3:] for line in seen) == ["db/mine.db", "q/mine.txt"]


def test_git_does_not_see_what_mam_adds_to_an_old_registry(mam: Mam) -> None:
    git("init", "-q", cwd=mam.here)
    jobs = mam.here / ".hermes/jobs"
    jobs.mkdir(parents=True)
    record = {"job_id": "abc12345", "status": "pending", "created_at": "2026-06-19T09:30:00Z", "prompt": "x"}
    (jobs / "abc12345.json").write_text(json.dumps(record))

    assert mam("list").code == 0
    mam("cancel", "abc12345")

    seen = git("status", "--porcelain", "--untracked-files=all", cwd=mam.here).splitlines()
    assert [line[3:] for line in seen if "/.store/" in line or "delegate_job_logs" in line] == []


def test_the_nearest_upward_is_used(mam: Mam) -> None:
    below = mam.here / "a/b"
    below.mkdir(parents=True)
    mam("init")
    assert mam("where", cwd=below).line == f"{mam.here}/.mam/jobs"
    mam("init", "--store", str(mam.here / "a/.hermes/jobs"))
    assert mam("where", cwd=below).line == f"{mam.here}/a/.hermes/jobs"
    mam("init", "--store", str(mam.here / "a/.mam/jobs"))
    ran = mam("where", cwd=below)
    assert ran.line == f"{mam.here}/a/.mam/jobs"
    assert "nearest" in ran.stderr


def test_a_flag_wins_over_the_environment_which_wins_over_the_settings(mam: Mam) -> None:
    config = mam.home / "config/mam/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('store = "~/configured"\n')
    assert mam("where").line == f"{mam.home}/configured"
    assert mam("where", MAM_STORE="surrounding").line == f"{mam.here}/surrounding"
    answer = mam("where", "--store", "flagged", "--json", MAM_STORE="surrounding").json
    assert answer == {
        "store": f"{mam.here}/flagged",
        "why": "named by --store",
        "exists": False,
        "logs_dir": f"{mam.here}/delegate_job_logs",
    }
    assert mam("--registry-dir=dir", "where").line == f"{mam.here}/dir"
    assert mam("--store", "before", "where", "--store", "behind").line == f"{mam.here}/behind"
    mam("where", "--store", "a", "--registry-dir", "b").failed(2, "give one")
    mam("where", "--store", "").failed(2, "--store")
    mam("--store").failed(2, "--store needs a value")


@pytest.mark.parametrize(
    ("address", "code", "says"),
    [
        ("postgresql://user:hunter2@127.0.0.1:1/db", 9, "postgresql://user@127.0.0.1:1/db"),
        ("postgresql://user:hunter2@host/db?nope=1", 2, "not a PostgreSQL address"),
        ("redis://:hunter2@host", 2, "redis"),
    ],
)
def test_a_store_that_cannot_be_reached_never_repeats_a_password(mam: Mam, address: str, code: int, says: str) -> None:
    for ran in (mam("register", "x", "--agent", "shell", "--store", address), mam("list", MAM_STORE=address)):
        ran.failed(code, says)
        assert "hunter2" not in ran.stderr


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:/pw:hunter2@127.0.0.1/db",
        "postgres:me:hunter2@127.0.0.1/db",
        "PostgreSQL:/pw:hunter2@127.0.0.1/db",
        "postgresql+psycopg:/pw:hunter2@127.0.0.1/db",
        "host=127.0.0.1 password=hunter2",
        "host = 127.0.0.1 password = hunter2",
        "connect_timeout=3 password=hunter2",
        "sqlite:hunter2.db",
        "sqlite3:/tmp/hunter2.db",
        "me:hunter2@host://db",
    ],
)
def test_a_mistyped_address_is_rejected_and_not_repeated(mam: Mam, address: str) -> None:
    register = ("register", "x", "--agent", "shell")
    for ran in (mam("where", "--store", address), mam(*register, "--store", address), mam("list", MAM_STORE=address)):
        ran.failed(2, "sqlite:///path or postgresql://user@host/database")
        assert "hunter2" not in ran.stderr
    config = mam.home / "config/mam/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'store = "{address}"\n')
    ran = mam("list")
    ran.failed(2, "sqlite:///path or postgresql://")
    assert "hunter2" not in ran.stderr
    assert list(mam.here.iterdir()) == []


def test_an_address_is_no_directory_of_a_registry(mam: Mam) -> None:
    ran = mam("list", "--registry-dir", "postgresql://me:hunter2@host/db")
    ran.failed(2, "almost an address")
    assert "hunter2" not in ran.stderr


@pytest.mark.parametrize("name", ["postgres", "sqlite/jobs", "a:b", "./postgres:x", "./host=x", "run=3", "my-user=me"])
def test_a_directory_may_have_such_a_name(mam: Mam, name: str) -> None:
    assert mam("where", "--store", name).line == f"{mam.here}/{name.removeprefix('./')}"


def test_a_worktree_shares_the_store_of_its_main_checkout(mam: Mam) -> None:
    main = repository(mam.here / "main")
    tree = mam.here / "elsewhere/tree"
    git("worktree", "add", str(tree), cwd=main)
    (tree / "deep/er").mkdir(parents=True)
    answer = mam("where", "--json", cwd=tree / "deep/er").json
    assert (answer["store"], answer["exists"]) == (f"{main}/.mam/jobs", False)
    assert "worktree" in answer["why"]
    job = mam("register", "x", "--agent", "shell", cwd=tree / "deep/er").line
    assert (main / f".mam/jobs/{job}.json").exists()
    assert mam("list", cwd=main).line.startswith(job)
    assert mam("list", cwd=tree).line.startswith(job)


def test_a_store_above_the_main_checkout_is_found_from_a_worktree(mam: Mam) -> None:
    main = repository(mam.here / "group/main")
    tree = mam.here / "tree"
    git("worktree", "add", str(tree), cwd=main)
    mam("init", cwd=mam.here / "group")
    assert mam("where", cwd=tree).line == f"{mam.here}/group/.mam/jobs"


def test_a_submodule_or_a_broken_git_file_is_an_ordinary_directory(mam: Mam) -> None:
    for text in ("gitdir: ../.git/modules/x\n", "nonsense", "gitdir: /nowhere/.git/worktrees/x", "gitdir: ", "\xff"):
        (mam.here / ".git").write_text(text)
        assert mam("where").line == f"{mam.here}/.mam/jobs"


def test_someone_elses_store_on_the_way_is_passed_over(mam: Mam) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    below = mam.here / "mine"
    below.mkdir()
    mam("init")
    os.chown(mam.here / ".mam", 4242, 4242)
    assert mam("where", cwd=below).line == f"{below}/.mam/jobs"
    os.chown(mam.here / ".mam", 0, 0)
    os.chown(mam.here / ".mam/jobs", 4242, 4242)
    assert mam("where", cwd=below).line == f"{below}/.mam/jobs"
    mam("where").failed(9, "not a directory of yours")
    mam("list", "--store", ".mam/jobs").failed(1, "another user", "mam trust")


@pytest.mark.parametrize("address", ["", "sqlite:///tmp/x.db"])
def test_without_apsw_the_message_names_what_is_needed(mam: Mam, tmp_path: Path, address: str) -> None:
    """As where no wheel fits the platform and nothing could compile it."""
    (tmp_path / "apsw.py").write_text("raise ImportError('no wheel')")
    mam("register", "x", "--agent", "a", PYTHONPATH=str(tmp_path), MAM_STORE=address).failed(2, "apsw", "C compiler")


def test_something_else_in_the_place_of_the_store(mam: Mam) -> None:
    (mam.here / "file").touch()
    for words in (("list",), ("init",), ("register", "x", "--agent", "shell")):
        mam(*words, "--store", "file").failed(9, "file")
        mam(*words, "--store", "file/jobs").failed(9, "file")


def test_a_held_lock_is_an_error(mam: Mam) -> None:
    import fcntl

    job = mam.register()
    with (mam.here / ".mam/jobs/.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = mam("complete", job, MAM_LOCK_WAIT_SECONDS="0.05")
    ran.failed(9, ".mam/jobs")
    assert mam.status(job) == "pending"

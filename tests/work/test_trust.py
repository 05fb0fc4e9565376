"""`mam trust`: a project's file takes effect after the user has approved exactly its content."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import Mam
from tests.work.commands import mam

__all__ = ["mam"]

TEXT = 'default_agent = "codex"\n'


def project_file(mam: Mam, text: str = TEXT, below: str = ".") -> Path:
    file = mam.here / below / ".mam/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def list_file(mam: Mam) -> Path:
    return mam.home / ".local/state/mam/trusted.json"


def counts(mam: Mam, cwd: Path | None = None) -> bool:
    """Whether the project's agent is taken."""
    return mam("register", "x", cwd=cwd).code == 0


def test_a_file_counts_once_it_is_trusted_and_no_longer_when_it_is_not(mam: Mam) -> None:
    file = project_file(mam)
    assert not counts(mam)
    ran = mam("trust")
    assert ran.line == str(file)
    assert 'sets default_agent to "codex"' in ran.stderr
    assert mam.record(mam("register", "x").line)["agent"] == "codex"
    assert mam("trust", "--revoke").line == str(file)
    assert not counts(mam)
    mam("trust", "--revoke").failed(1, "was not trusted")


def test_a_changed_file_must_be_trusted_again(mam: Mam) -> None:
    file = project_file(mam)
    mam("trust")
    file.write_text('default_agent = "human"\n')
    assert not counts(mam)
    assert mam("trust", "--list").line.endswith("\tchanged")
    ran = mam("trust", "--json")
    assert ran.json["changed"] is True
    assert "an earlier content" in ran.stderr
    assert mam.record(mam("register", "x").line)["agent"] == "human"
    file.write_text(TEXT)
    assert not counts(mam), "an earlier content is not trusted for ever"


def test_the_same_size_and_time_do_not_pass_for_the_same_content(mam: Mam) -> None:
    file = project_file(mam)
    mam("trust")
    assert counts(mam)
    about = file.stat()
    file.write_text(TEXT.replace("codex", "evil!"))
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert not counts(mam)


def test_trust_is_for_one_path(mam: Mam) -> None:
    project_file(mam)
    mam("trust")
    elsewhere = mam.here / "vendor/lib"
    project_file(mam, below="vendor/lib")
    assert counts(mam, mam.here)
    assert not counts(mam, elsewhere)


def test_a_file_or_its_project_may_be_named(mam: Mam, tmp_path: Path) -> None:
    file = project_file(mam, below="deep")
    assert mam("trust", "deep").line == str(file)
    assert mam("trust", "deep/.mam/config.toml", "--revoke").line == str(file)
    (mam.here / "link").symlink_to("deep")
    assert mam("trust", "link").line == str(file)
    assert mam("trust", str(file)).line == str(file)
    file.unlink()
    assert mam("trust", "--list").line.endswith("\tmissing")
    assert mam("trust", str(file), "--revoke").line == str(file)
    assert mam("trust", "--list").out == ""


def test_paths_that_trust_rejects(mam: Mam) -> None:
    mam("trust").failed(1, ".mam/config.toml")
    mam("trust", ".mam/config.toml").failed(1, "not a file of yours")
    (mam.here / "other.toml").write_text(TEXT)
    mam("trust", "other.toml").failed(2, "no other file needs trust")
    file = project_file(mam, "nonsense = 1\n")
    mam("trust").failed(2, "nonsense", str(file))
    file.write_text("= broken")
    mam("trust").failed(2, "not valid TOML")
    file.unlink()
    file.mkdir()
    mam("trust").failed(1)
    mam("trust", "--list", "--revoke").failed(2)


def test_everything_it_would_do_is_shown_and_cannot_steer_the_terminal(mam: Mam) -> None:
    project_file(
        mam,
        'store = "/x\\u001b]0;owned\\u0007"\non_idle = "stop"\n'
        '[workdirs]\n"/a" = "/b"\n[commands.evil]\nargv = ["rm", "-rf", "{workdir}"]\nenv = {LD_PRELOAD = "/x.so"}\n',
    )
    stderr = mam("trust").stderr
    assert "\x1b" not in stderr
    for word in ("store", "owned", "rm", "-rf", "LD_PRELOAD", '"/a"', "on_idle, which needs no trust"):
        assert word in stderr


def test_a_password_is_not_shown(mam: Mam) -> None:
    project_file(mam, 'store = "postgresql://me:hush@db.example/jobs?sslpassword=hush"\n')
    ran = mam("trust")
    assert "postgresql://me@db.example/jobs" in ran.stderr
    assert "hush" not in ran.stderr + ran.out


def test_an_agent_gives_no_trust(mam: Mam) -> None:
    project_file(mam)
    mam("trust", MAM_SOCKET="/some/door").failed(1, "inside a job")
    assert not list_file(mam).exists()


def test_a_link_is_not_accepted(mam: Mam, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.toml"
    real.write_text(TEXT)
    (mam.here / ".mam").mkdir()
    (mam.here / ".mam/config.toml").symlink_to(real)
    mam("trust").failed(1)
    assert not counts(mam)


def test_the_file_of_another_user_does_not_count(mam: Mam) -> None:
    file = project_file(mam)
    if os.geteuid() != 0:
        pytest.skip("giving a file away needs root")
    mam("trust")
    os.chown(file, 12345, 12345)
    assert not counts(mam)
    mam("trust").failed(1)


def test_the_list_is_private_and_a_list_that_is_not_counts_for_nothing(mam: Mam) -> None:
    project_file(mam)
    mam("trust")
    kept = list_file(mam)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert counts(mam)
    kept.chmod(0o666)
    assert not counts(mam)
    kept.chmod(0o600)
    kept.parent.chmod(0o777)
    assert not counts(mam)
    kept.parent.chmod(0o700)
    moved = kept.with_name("moved.json")
    kept.rename(moved)
    kept.symlink_to(moved)
    assert not counts(mam)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"files": []}', '{"files": {"x": 1}}', '{"files": {"x": {}}}'])
def test_a_damaged_trust_list_approves_nothing_and_can_be_replaced(mam: Mam, content: str) -> None:
    project_file(mam)
    mam("trust")
    list_file(mam).write_text(content)
    assert not counts(mam)
    assert mam("trust", "--list").out == ""
    mam("trust")
    assert counts(mam)


def test_two_simultaneous_trusts_are_both_stored(mam: Mam) -> None:
    names = [f"p{number}" for number in range(12)]
    for name in names:
        project_file(mam, below=name)
    started = [mam.start("trust", name) for name in names]
    for process in started:
        process.communicate(timeout=60)
    assert [process.returncode for process in started] == [0] * 12
    assert len(mam("trust", "--list", "--json").json) == 12
    assert set(json.loads(list_file(mam).read_bytes())) == {"schema_version", "files", "stores"}


def test_a_worktree_uses_the_file_of_its_main_checkout(mam: Mam, tmp_path: Path) -> None:
    from tests.work.repositories import Repository

    repository = Repository(mam.here)
    repository.git("init", "-q", "-b", "main")
    repository.commit("file", "x")
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    file = project_file(mam)
    mam("trust")
    assert mam("trust", "--json", cwd=tmp_path / "tree").json["file"] == str(file)
    assert counts(mam, tmp_path / "tree")


def test_a_directory_that_is_gone_is_no_error(mam: Mam) -> None:
    gone = mam.here / "gone"
    gone.mkdir()
    ran = subprocess.run(
        ["/bin/sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *mam._argv(("trust", "--list"))],
        cwd=gone, env=mam.env, capture_output=True, timeout=60,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b"")

"""A repository that an agent has prepared does nothing when its changes are recorded, shown and applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.scripted_claude import Project, project_fixture

__all__ = ["project_fixture"]


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that a command of the repository would make."""
    return tmp_path / "canary"


def poison(project: Project, canary: Path) -> None:
    """Hooks, filters, drivers, external diffs, pagers: all that a repository's configuration can name."""
    git, evil = project.repository.git, f"touch {canary}; cat"
    (project.path / ".git/info/attributes").write_text("* filter=evil diff=evil merge=evil\n")
    for key in (
        "core.fsmonitor", "core.pager", "pager.diff", "core.editor", "core.sshCommand", "diff.external",
        "diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
        "merge.evil.driver", "interactive.diffFilter", "gpg.program", "sequence.editor", "alias.diff", "alias.merge",
        "credential.helper", "core.alternateRefsCommand",
    ):  # fmt: skip
        git("config", key, f"!{evil}" if key.startswith("alias") else evil)
    git("config", "commit.gpgSign", "true")
    git("config", "diff.orderFile", str(canary.parent / "fifo"))
    git("config", "diff.noprefix", "true")
    git("config", "merge.ff", "false")
    git("config", "merge.verifySignatures", "true")
    for hook in ("post-merge", "pre-merge-commit", "post-checkout", "reference-transaction", "pre-commit",
                 "post-commit", "prepare-commit-msg", "commit-msg", "post-index-change"):  # fmt: skip
        path = project.path / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n")
        path.chmod(0o755)


@pytest.mark.parametrize("where", [("--worktree",), ()])
def test_no_command_of_the_repository_runs(project: Project, canary: Path, where: tuple[str, ...]) -> None:
    poison(project, canary)
    job = project.run("echo b > b.txt; echo two >> a.txt", words=where)
    assert "+++ b/b.txt" in project.mam("diff", job).out
    assert project.mam("diff", job, "--stat").code == 0
    assert project.mam("diff", job, "--comment", EDITOR="true").code == 0
    if where:
        assert project.mam("apply", job).code == 0
        assert (project.path / "b.txt").read_text() == "b\n"
    assert not canary.exists()


def test_the_user_sees_no_escape_of_the_repository_on_a_terminal(project: Project) -> None:
    job = project.run(r"printf 'x\033]0;owned\007\033[2Jy\n' > b.txt")
    shown = project.mam.on_terminal("diff", job)
    assert "owned" not in shown.out
    assert "\033[2J" not in shown.out
    assert "\033[" in shown.out, "git's own colours are there"


def test_odd_names_links_and_nested_repositories_are_inert(project: Project, canary: Path) -> None:
    job = project.run(
        r"printf x > 'two  words'; printf x > '-rf'; printf x > ':(top)x'; printf x > \$\(touch\ canary\)",
        "ln -s /etc/passwd link",
        "git init -q nested && git -C nested -c user.name=x -c user.email=x@x commit -q --allow-empty -m x",
        f"git -C nested config core.fsmonitor 'touch {canary}'",
    )
    record = project.mam.record(job)
    assert (record["status"], "nested" in record["run"]["changes"]["note"]) == ("completed", True)
    diff = project.mam("diff", job).out
    assert "/etc/passwd" in diff
    assert "root:" not in diff
    assert project.mam("diff", job, "--", ":(top)x").out.count("diff --git") == 1
    assert project.mam("apply", job).code == 0
    assert (project.path / "link").is_symlink()
    assert not canary.exists()


def test_a_link_out_of_the_directory_is_not_followed(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.txt").write_text("secret\n")
    job = project.run(f"rm -r sub/deep; ln -s {outside} sub/deep", words=())
    assert "secret" not in project.mam("diff", job).out
    job = project.run(f"rm -r sub/deep; ln -s {outside} sub/deep")
    assert project.mam("apply", job).code in (0, 1)
    assert (outside / "file.txt").read_text() == "secret\n"


def test_a_huge_diff_streams(project: Project) -> None:
    job = project.run("seq 1 900000 > big.txt")
    assert project.mam.record(job)["run"]["changes"]["added"] == 900000
    assert project.mam("diff", job).out.endswith("+900000\n")
    assert project.mam("diff", job, "--stat").out.count("\n") == 2


def test_a_record_that_names_options_and_other_directories_is_not_obeyed(project: Project, canary: Path) -> None:
    import json

    job = project.run("echo b > b.txt")
    file = project.path / ".mam/jobs" / f"{job}.json"
    record = json.loads(file.read_text())
    record["run"]["changes"] |= {"before": f"--output={canary}", "after": "--help"}
    file.write_text(json.dumps(record))
    project.mam("diff", job)
    project.mam("apply", job)
    assert not canary.exists()

"""What an agent leaves behind runs nothing when mam commits, counts, pushes, cleans up and starts the next job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inbox.leftovers import BROKEN, COMMITTED, LEFTOVERS, MESSY, NESTED
from tests.inbox.test_repositories import InboxWithRemote

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def setup(tmp_path: Path) -> InboxWithRemote:
    return InboxWithRemote(tmp_path)


def _trap_script(path: Path, trap: Path) -> None:
    path.write_text(f"#!/bin/sh\ntouch {trap}\n")
    path.chmod(0o755)


def _branch(setup: InboxWithRemote) -> str:
    (branch,) = setup.remote.branches() - {"main", "feature-xyz"}
    return branch


@pytest.mark.parametrize("leftover", LEFTOVERS)
def test_nothing_that_an_agent_left_is_run(setup: InboxWithRemote, leftover: str) -> None:
    trap = setup.folder / "trap"
    script = LEFTOVERS[leftover].replace("TRAP", str(trap))
    setup.inbox.drop(
        f"---\npush: true\n---\nset -e\n{script}\necho new > new.txt\nrm -f {trap}; echo reached the end\n"
    )
    setup.inbox("inbox", "once")
    (outcome,) = (setup.inbox.here / "finished/acme/shop/main").glob("x.*.md")
    assert "\nreached the end\n" in outcome.read_text().partition("# Outcome")[2], "the agent could not leave all of it"
    assert not trap.exists()
    assert outcome.name == ("x.error.md" if leftover in BROKEN else "x.done.md")
    setup.inbox.drop("echo more > more.txt", "y.prompt.md")
    setup.inbox("inbox", "once")
    for held in setup.inbox("workspaces", "--json").json:
        setup.inbox("workspaces", "--remove", held["job_id"], "--force")
    assert not trap.exists()


@pytest.mark.parametrize("nested", [NESTED, COMMITTED], ids=["untracked", "committed"])
def test_a_nested_repository_is_not_lost(setup: InboxWithRemote, nested: str) -> None:
    setup.inbox.drop(f"---\npush: true\n---\n{nested}\necho more > kit/more; echo new > new.txt")
    setup.inbox.once()
    (held,) = setup.inbox("workspaces", "--json").json
    assert held["dirty"]
    assert setup.remote.git("show", f"{_branch(setup)}:new.txt") == "new"


def test_a_nested_repository_is_named_and_not_committed(setup: InboxWithRemote) -> None:
    setup.inbox.drop(f"---\npush: true\n---\n{NESTED}\necho new > new.txt")
    setup.inbox.once()
    assert setup.remote.git("ls-tree", "-r", "--name-only", _branch(setup)).split() == ["new.txt", "sub/deep/file.txt"]
    assert "- note: mam commits no nested repository; in the worktree is kit/\n" in setup.inbox.outcome()


def test_mam_commits_what_git_add_would(setup: InboxWithRemote) -> None:
    script = f"{MESSY}\ncp $(git rev-parse --git-dir)/index ../index; export GIT_INDEX_FILE=../index; git add --all"
    setup.inbox.drop(f"---\npush: true\n---\n{script}; echo tree $(git write-tree)")
    setup.inbox.once()
    (tree,) = [line for line in setup.inbox.outcome().splitlines() if line.startswith("tree ")]
    assert tree == f"tree {setup.remote.git('rev-parse', f'{_branch(setup)}^{{tree}}')}"


def test_hooks_of_a_directory_that_gets_the_branch_are_not_run(setup: InboxWithRemote) -> None:
    """An agent that worked in the directory itself could have written them."""
    trap = setup.folder / "trap"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        _trap_script(setup.source.path / ".git/hooks" / name, trap)
    setup.inbox.drop("echo new > new.txt", where="acme/here/main")
    ((job_id, status, _),) = setup.inbox.once()
    assert status == "completed"
    assert setup.source.git("rev-parse", f"mam/echo-new-new-txt-{job_id[:8]}")
    assert not trap.exists()


def test_a_commit_that_another_one_replaces_still_counts(setup: InboxWithRemote) -> None:
    setup.inbox.drop(
        "---\npush: true\n---\necho new > new.txt; git add .; git -c user.name=a -c user.email=a@x commit -qm new\n"
        "after=$(git -c user.name=a -c user.email=a@x commit-tree -p HEAD -m after HEAD^{tree})\n"
        "git replace HEAD^ $after"
    )
    setup.inbox.once()
    assert "- commits: 1\n" in setup.inbox.outcome()
    assert setup.remote.git("show", f"{_branch(setup)}:new.txt") == "new"


def test_a_filter_of_the_user_runs_with_the_command_of_the_user(setup: InboxWithRemote) -> None:
    """Neither a definition in the repository nor a program in the work tree replaces it."""
    trap = setup.folder / "trap"
    (setup.inbox.home / ".gitconfig").write_text('[filter "upper"]\n\tclean = tr a-z A-Z\n\trequired\n')
    setup.inbox.env["PATH"] = f".:{setup.inbox.env['PATH']}"
    setup.inbox.drop(
        f"---\npush: true\n---\ngit config filter.upper.clean 'touch {trap}; cat'\n"
        f"printf '#!/bin/sh\\ntouch {trap}; cat\\n' > tr; chmod +x tr\n"
        "echo '*.txt filter=upper' > .gitattributes; echo new > new.txt"
    )
    setup.inbox.once()
    assert not trap.exists()
    assert setup.remote.git("show", f"{_branch(setup)}:new.txt") == "NEW"

"""What an agent leaves behind runs nothing when mam commits, counts, pushes, cleans up and starts the next job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inbox.leftovers import BROKEN, COMMITTED, LEFTOVERS, MESSY, NESTED
from tests.inbox.test_repositories import Shop

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def _trap_script(path: Path, trap: Path) -> None:
    path.write_text(f"#!/bin/sh\ntouch {trap}\n")
    path.chmod(0o755)


def _branch(shop: Shop) -> str:
    (branch,) = shop.remote.branches() - {"main", "feature-xyz"}
    return branch


@pytest.mark.parametrize("leftover", LEFTOVERS)
def test_nothing_that_an_agent_left_is_run(shop: Shop, leftover: str) -> None:
    trap = shop.folder / "trap"
    script = LEFTOVERS[leftover].replace("TRAP", str(trap))
    shop.desk.drop(f"---\npush: true\n---\nset -e\n{script}\necho new > new.txt\nrm -f {trap}; echo reached the end\n")
    shop.desk("inbox", "once")
    (outcome,) = (shop.desk.here / "finished/acme/shop/main").glob("x.*.md")
    assert "\nreached the end\n" in outcome.read_text().partition("# Outcome")[2], "the agent could not leave all of it"
    assert not trap.exists()
    assert outcome.name == ("x.error.md" if leftover in BROKEN else "x.done.md")
    shop.desk.drop("echo more > more.txt", "y.prompt.md")
    shop.desk("inbox", "once")
    for held in shop.desk("workspaces", "--json").json:
        shop.desk("workspaces", "--remove", held["job_id"], "--force")
    assert not trap.exists()


@pytest.mark.parametrize("nested", [NESTED, COMMITTED], ids=["untracked", "committed"])
def test_a_nested_repository_is_not_lost(shop: Shop, nested: str) -> None:
    shop.desk.drop(f"---\npush: true\n---\n{nested}\necho more > kit/more; echo new > new.txt")
    shop.desk.once()
    (held,) = shop.desk("workspaces", "--json").json
    assert held["dirty"]
    assert shop.remote.git("show", f"{_branch(shop)}:new.txt") == "new"


def test_a_nested_repository_is_named_and_not_committed(shop: Shop) -> None:
    shop.desk.drop(f"---\npush: true\n---\n{NESTED}\necho new > new.txt")
    shop.desk.once()
    assert shop.remote.git("ls-tree", "-r", "--name-only", _branch(shop)).split() == ["new.txt", "sub/deep/file.txt"]
    assert "- note: mam commits no nested repository; in the worktree is kit/\n" in shop.desk.outcome()


def test_mam_commits_what_git_add_would(shop: Shop) -> None:
    script = f"{MESSY}\ncp $(git rev-parse --git-dir)/index ../index; export GIT_INDEX_FILE=../index; git add --all"
    shop.desk.drop(f"---\npush: true\n---\n{script}; echo tree $(git write-tree)")
    shop.desk.once()
    (tree,) = [line for line in shop.desk.outcome().splitlines() if line.startswith("tree ")]
    assert tree == f"tree {shop.remote.git('rev-parse', f'{_branch(shop)}^{{tree}}')}"


def test_hooks_of_a_directory_that_gets_the_branch_are_not_run(shop: Shop) -> None:
    """An agent that worked in the directory itself could have written them."""
    trap = shop.folder / "trap"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        _trap_script(shop.source.path / ".git/hooks" / name, trap)
    shop.desk.drop("echo new > new.txt", where="acme/here/main")
    ((job_id, status, _),) = shop.desk.once()
    assert status == "completed"
    assert shop.source.git("rev-parse", f"mam/echo-new-new-txt-{job_id[:8]}")
    assert not trap.exists()


def test_a_commit_that_another_one_replaces_still_counts(shop: Shop) -> None:
    shop.desk.drop(
        "---\npush: true\n---\necho new > new.txt; git add .; git -c user.name=a -c user.email=a@x commit -qm new\n"
        "after=$(git -c user.name=a -c user.email=a@x commit-tree -p HEAD -m after HEAD^{tree})\n"
        "git replace HEAD^ $after"
    )
    shop.desk.once()
    assert "- commits: 1\n" in shop.desk.outcome()
    assert shop.remote.git("show", f"{_branch(shop)}:new.txt") == "new"


def test_a_filter_of_the_user_runs_with_the_command_of_the_user(shop: Shop) -> None:
    """Neither a definition in the repository nor a program in the work tree replaces it."""
    trap = shop.folder / "trap"
    (shop.desk.home / ".gitconfig").write_text('[filter "upper"]\n\tclean = tr a-z A-Z\n\trequired\n')
    shop.desk.env["PATH"] = f".:{shop.desk.env['PATH']}"
    shop.desk.drop(
        f"---\npush: true\n---\ngit config filter.upper.clean 'touch {trap}; cat'\n"
        f"printf '#!/bin/sh\\ntouch {trap}; cat\\n' > tr; chmod +x tr\n"
        "echo '*.txt filter=upper' > .gitattributes; echo new > new.txt"
    )
    shop.desk.once()
    assert not trap.exists()
    assert shop.remote.git("show", f"{_branch(shop)}:new.txt") == "NEW"

"""Jobs for repositories: a branch for each, from the requested branch, committed, pushed, with a pull request."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.inbox.commands import InboxCommand
from tests.waiting import await_that
from tests.work.repositories import Repository, make_repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class InboxWithRemote:
    """The command, a repository with a work tree, and the bare repository to which both push."""

    def __init__(self, folder: Path) -> None:
        self.inbox = InboxCommand(folder)
        self.source = make_repository(folder / "source")
        self.source.git("checkout", "-q", "-b", "feature-xyz")
        self.source.commit("feature.txt", "feature\n")
        self.source.git("checkout", "-q", "main")
        self.source.git("clone", "-q", "--bare", str(folder / "source"), str(folder / "remote.git"))
        self.remote = Repository(folder / "remote.git")
        self.inbox.configure(repos=f'"acme/shop" = "file://{folder}/remote.git"\n"acme/here" = "{folder}/source"')
        self.folder = folder


@pytest.fixture
def setup(tmp_path: Path) -> InboxWithRemote:
    return InboxWithRemote(tmp_path)


def test_a_branch_is_made_from_the_branch_of_the_path_and_pushed(setup: InboxWithRemote) -> None:
    setup.inbox.drop("---\npush: true\nartifacts: new.txt\n---\ncat feature.txt; echo new > new.txt",
                   where="acme/shop/feature-xyz")  # fmt: skip
    ((job_id, status, where),) = setup.inbox.once()
    assert (status, where) == ("completed", "finished/acme/shop/feature-xyz/x.done.md")
    (branch,) = setup.remote.branches() - {"main", "feature-xyz"}
    assert branch == f"mam/cat-feature-txt-echo-new-new-txt-{job_id[:8]}"
    assert setup.remote.git("show", f"{branch}:new.txt") == "new"
    assert setup.remote.git("rev-parse", f"{branch}^") == setup.remote.git("rev-parse", "feature-xyz")
    assert setup.remote.git("log", "-1", "--format=%an <%ae>|%cn", branch) == "mam <mam@localhost>|mam"
    assert f"Mam-Job: {job_id}" in setup.remote.git("log", "-1", "--format=%b", branch)
    outcome = setup.inbox.outcome(where="acme/shop/feature-xyz")
    assert f"- branch: {branch}\n- commits: 1\n- pushed to: acme/shop\n" in outcome
    assert setup.inbox("workspaces").out == "", "the worktree is gone: nothing is in it that is nowhere else"


def test_commits_of_the_agent_keep_their_author(setup: InboxWithRemote) -> None:
    setup.inbox.drop("---\npush: yes\n---\necho a > a; git add a; "
                   "git -c user.name=Agent -c user.email=a@x commit -qm 'By hand'; echo b > b")  # fmt: skip
    setup.inbox.once()
    (branch,) = setup.remote.branches() - {"main", "feature-xyz"}
    assert setup.remote.git("log", "-2", "--format=%an", branch).split() == ["mam", "Agent"]
    assert "- commits: 2\n" in setup.inbox.outcome()


def test_no_changes_no_branch(setup: InboxWithRemote) -> None:
    setup.inbox.drop("---\npush: yes\npull_request: yes\n---\ntrue")
    setup.inbox.once()
    assert setup.remote.branches() == {"main", "feature-xyz"}
    assert "it changed nothing, so there is no branch" in setup.inbox.outcome()
    assert setup.inbox("workspaces").out == ""


def test_a_repository_that_is_a_directory_gets_the_branch_without_being_asked(setup: InboxWithRemote) -> None:
    before = setup.source.git("status", "--porcelain", "--branch")
    setup.inbox.drop("echo new > new.txt", where="acme/here/main")
    ((job_id, _, _),) = setup.inbox.once()
    branch = f"mam/echo-new-new-txt-{job_id[:8]}"
    assert setup.source.git("show", f"{branch}:new.txt") == "new"
    assert setup.source.git("status", "--porcelain", "--branch") == before
    assert setup.source.worktrees() == [str(setup.source.path)]


def test_without_a_push_the_outcome_shows_how_to_fetch_the_branch(setup: InboxWithRemote) -> None:
    setup.inbox.drop("echo new > new.txt")
    setup.inbox.once()
    assert setup.remote.branches() == {"main", "feature-xyz"}
    (line,) = [line for line in setup.inbox.outcome().splitlines() if line.startswith("- to have it: ")]
    setup.source.git(*line.removeprefix("- to have it: git ").split())
    assert setup.source.git("show", "FETCH_HEAD:new.txt") == "new"


def test_a_pull_request_is_opened_for_the_branch_of_the_path(setup: InboxWithRemote, tmp_path: Path) -> None:
    """With a command that replaces gh and prints its arguments."""
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$0.said"; pwd >> "$0.said"; echo https://example.org/pull/7\n')
    gh.chmod(0o755)
    setup.inbox.env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    setup.inbox.drop("---\npull_request: true\n---\n# A title\necho new > new.txt", where="acme/shop/feature-xyz")
    ((job_id, _, _),) = setup.inbox.once()
    said = (tmp_path / "gh.said").read_text().splitlines()
    branch = f"mam/a-title-echo-new-new-txt-{job_id[:8]}"
    assert said[:4] == ["pr", "create", "--repo", "acme/shop"]
    assert said[4:8] == ["--head", branch, "--base", "feature-xyz"]
    assert said[8:10] == ["--title", "A title"]
    assert said[-1].endswith("transport.git"), "away from what the agent could write"
    assert branch in setup.remote.branches()
    assert "- pull request: https://example.org/pull/7\n" in setup.inbox.outcome(where="acme/shop/feature-xyz")
    record = setup.inbox.record(job_id)
    assert record["run"]["pull_request"] == "https://example.org/pull/7"


def test_a_request_that_cannot_be_opened_is_an_error_that_keeps_the_work(setup: InboxWithRemote) -> None:
    setup.inbox.env["PATH"] = "/usr/bin:/bin"
    setup.inbox.drop("---\npull_request: true\n---\necho new > new.txt")
    setup.inbox.once(code=7)
    outcome = setup.inbox.outcome("x.error.md")
    assert "no pull request could be opened: gh" in outcome
    assert len(setup.remote.branches()) == 3


def test_a_rejected_push_is_an_error_that_names_the_branch(setup: InboxWithRemote) -> None:
    hook = setup.remote.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not today' >&2; exit 1\n")
    hook.chmod(0o755)
    setup.inbox.drop("---\npush: true\n---\necho new > new.txt")
    setup.inbox.once(code=7)
    outcome = setup.inbox.outcome("x.error.md")
    assert "its work is committed on mam/echo-new-new-txt-" in outcome
    assert "could not be pushed" in outcome
    assert len(setup.inbox("workspaces", "--json").json) == 1


def test_a_branch_that_does_not_exist_names_those_that_do(setup: InboxWithRemote) -> None:
    setup.inbox.drop("true", where="acme/shop/nowhere")
    setup.inbox.once(code=7)
    assert "acme/shop has no branch nowhere; there are feature-xyz, main" in setup.inbox.outcome(
        "x.error.md", "acme/shop/nowhere"
    )


def test_a_fetch_that_fails_is_tried_again_and_deletes_nothing(setup: InboxWithRemote) -> None:
    setup.inbox.drop("echo one > one.txt")
    setup.inbox.once()
    setup.remote.path.rename(setup.folder / "away.git")
    path = setup.inbox.drop("---\nretries: 3\n---\necho two > two.txt", "y.prompt.md")
    watcher = setup.inbox.start("inbox", "watch")
    try:
        _until(lambda: _waits(setup.inbox, "could not be fetched"))
        assert path.with_name("y.running.md").exists()
        (setup.folder / "away.git").rename(setup.remote.path)
        _until(lambda: (setup.inbox.here / "finished/acme/shop/main/y.done.md").exists())
    finally:
        watcher.terminate()
        watcher.communicate(timeout=60)


def test_a_hostile_agent_cannot_make_mam_run_anything_when_it_fetches_or_pushes(setup: InboxWithRemote) -> None:
    """The agent can write into the settings of its worktree's repository; mam never reads those."""
    trap = setup.folder / "trap"
    setup.inbox.drop(
        "---\npush: true\n---\n"
        f"git config core.sshCommand 'touch {trap}'; git config core.hooksPath .\n"
        f"git config credential.helper '!touch {trap}'\n"
        f"git config url.ext::sh.insteadOf file://; git config core.fsmonitor 'touch {trap}'\n"
        f"git config remote.origin.url 'ext::sh -c touch% {trap}'; git config protocol.ext.allow always\n"
        f"printf '#!/bin/sh\\ntouch {trap}\\n' > pre-push; cp pre-push pre-commit; cp pre-push reference-transaction\n"
        "chmod +x pre-* ref*\n"
        f"git config filter.x.clean 'touch {trap}; cat'; echo '* filter=x' > .gitattributes; echo new > new.txt"
    )
    setup.inbox.once()
    setup.inbox.drop("echo more > more.txt", "y.prompt.md")
    setup.inbox.once()
    assert not trap.exists()
    assert len(setup.remote.branches()) == 3


def test_addresses_with_passwords_reach_no_record_and_no_file(setup: InboxWithRemote) -> None:
    canary = "hunter2-canary"
    setup.inbox.configure(repos=f'"acme/shop" = "https://me:{canary}@127.0.0.1:1/shop.git"', queue="max_retries = 0")
    setup.inbox.drop("true")
    setup.inbox.once(code=7)
    assert "could not be fetched" in setup.inbox.outcome("x.error.md")
    for top in (setup.inbox.here, setup.inbox.home / ".local"):
        for path in top.rglob("*"):
            assert not path.is_file() or canary.encode() not in path.read_bytes(), path


def test_flat_mode_is_for_this_repository(setup: InboxWithRemote) -> None:
    source = setup.source.path
    (source / ".mam" / "inbox").mkdir(parents=True)
    (source / ".mam" / "inbox" / "a.prompt.md").write_text("echo flat > flat.txt")
    (source / ".mam" / "inbox" / "b.prompt.md").write_text("---\nworktree: no\n---\npwd")
    ran = setup.inbox("inbox", "once", "--mode", "flat", cwd=source)
    assert ran.code == 0, ran.stderr
    (branch,) = setup.source.branches() - {"main", "feature-xyz"}
    assert setup.source.git("show", f"{branch}:flat.txt") == "flat"
    assert setup.source.git("status", "--porcelain") == ""
    assert (source / ".mam/finished/b.done.md").read_text().endswith(f"{source}\n")
    assert {job["inbox"]["repo"] for job in setup.inbox("list", "--json", cwd=source).json} == {"source"}


def test_single_owner_mode_takes_the_owner_from_the_settings(setup: InboxWithRemote) -> None:
    setup.inbox.configure('mode = "single-owner"\nowner = "acme"', repos=f'"acme/shop" = "{setup.folder}/remote.git"')
    setup.inbox.drop("echo new > new.txt", where="shop/main")
    ((job_id, status, _),) = setup.inbox.once()
    assert status == "completed"
    assert f"mam/echo-new-new-txt-{job_id[:8]}" in setup.remote.branches()
    record = json.loads((setup.inbox.here / ".queue/jobs" / job_id / "job.json").read_bytes())
    assert (record["git_owner"], record["repo_name"], record["branch_name"]) == ("acme", "shop", "main")


def _waits(inbox: InboxCommand, words: str) -> bool:
    ran = inbox("list", "--status", "waiting", "--json")
    return ran.code == 0 and any(words in str(job["reason"]) for job in ran.json)


def _until(condition: Callable[[], bool]) -> None:
    await_that(condition, "it never happened")

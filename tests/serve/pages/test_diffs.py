"""A diff of git becomes files and numbered lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mam.serve.pages.diffs import ADDED, HUNK, REMOVED, SAME, read_diff
from tests.needs import need

NAMES = ("plain.txt", "with space.txt", "größe.txt", 'quo"te.txt', "tab\there.txt", "a b/c b/d.txt", "-dash.txt")


def test_lines_have_the_numbers_of_both_sides() -> None:
    diff = read_diff(
        [b"diff --git a/x b/x\nindex 111..222 100644\n--- a/x\n+++ b/x\n@@ -8,3 +9,3 @@ def f():\n a\n-b\n+c\n d\n"]
    )
    assert [(line.kind, line.before, line.after) for line in diff.files[0].lines] == [
        (HUNK, None, None), (SAME, 8, 9), (REMOVED, 9, None), (ADDED, None, 10), (SAME, 10, 11)]  # fmt: skip


def test_content_that_looks_like_a_heading_is_content() -> None:
    diff = read_diff([b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/y\n+++ b/y\n"])
    assert [file.path for file in diff.files] == ["x"]
    assert (diff.added, diff.removed) == (1, 1)


def test_parts_may_end_anywhere() -> None:
    data = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
    assert read_diff([data[at : at + 1] for at in range(len(data))]) == read_diff([data])


@pytest.mark.parametrize("name", NAMES)
def test_gits_own_diffs_are_read_whatever_the_names(tmp_path: Path, name: str) -> None:
    """A file is added, changed, renamed and deleted; git tells each of them in its own words."""
    need("git")

    def git(*words: str) -> bytes:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True).stdout

    git("init", "-q")
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("one\ntwo\nthree\nfour\n")
    git("add", "-A")
    added = read_diff([git("diff", "--cached")]).files
    git("commit", "-qm", "x")
    file.write_text("one\n2\nthree\nfour")
    changed = read_diff([git("diff")]).files
    git("commit", "-qam", "y")
    file.rename(tmp_path / "moved.txt")
    git("add", "-A")
    moved = read_diff([git("diff", "--cached", "-M")]).files
    (tmp_path / "moved.txt").unlink()
    deleted = read_diff([git("diff")]).files
    shown = name.replace("\t", r"\t")
    assert [(one.path, one.action, one.added) for one in added] == [(shown, "added", 4)]
    assert [(one.path, one.action, one.added, one.removed) for one in changed] == [(shown, "changed", 2, 2)]
    assert [(one.path, one.was, one.action) for one in moved] == [("moved.txt", shown, "renamed")]
    assert [(one.path, one.action, one.removed) for one in deleted] == [("moved.txt", "deleted", 4)]
    assert len(changed[0].blob) >= 7

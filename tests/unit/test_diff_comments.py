"""Comments in a diff become one prompt."""

from __future__ import annotations

from mam.jobs.diff_comments import comments_prompt, with_heading

DIFF = """\
diff --git a/src/now.py b/src/now.py
index 1..2 100644
--- a/src/now.py
+++ b/src/now.py
@@ -8,3 +8,4 @@ def now():
 before
-old
+new
+newer
 behind
diff --git a/b.txt b/b.txt
"""


def edited(after: str, *comment: str) -> str:
    return with_heading(DIFF).replace(f"{after}\n", f"{after}\n" + "".join(f"{line}\n" for line in comment), 1)


def test_without_comments_there_is_no_prompt() -> None:
    assert comments_prompt(with_heading(DIFF)) is None
    assert comments_prompt("") is None
    assert comments_prompt(edited("+new", "#", "#  ")) is None


def test_a_comment_names_the_file_the_line_and_the_code() -> None:
    prompt = comments_prompt(edited("+newer", "# rename it", "# and test it"))
    assert prompt is not None
    assert "src/now.py, line 10:\n    +newer\nrename it\nand test it" in prompt


def test_a_removed_line_and_a_file_can_have_comments() -> None:
    assert "src/now.py, line 8:\n    -old\nwhy?" in (comments_prompt(edited("-old", "# why?")) or "")
    assert "b.txt:\nis empty" in (comments_prompt(with_heading(DIFF) + "# is empty\n") or "")


def test_every_comment_is_sent_in_its_order() -> None:
    text = edited("+new", "# one").replace(" behind\n", " behind\n# two\n")
    prompt = comments_prompt(text) or ""
    assert prompt.index("one") < prompt.index("two")


def test_a_comment_that_repeats_a_line_of_the_heading_is_sent() -> None:
    heading = with_heading("").splitlines()[0]
    assert heading[2:] in (comments_prompt(edited("+new", heading)) or "")

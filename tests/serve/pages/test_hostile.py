"""Hostile text is inert wherever a view makes HTML of it."""

from __future__ import annotations

import pytest

from mam.conversation.items import Asked, Changed, Line, Notice, Plan, Said, Step, Thought, Used
from mam.serve.pages import ansi, markdown
from mam.serve.pages.conversation_blocks import BLOCKS_SHOWN, blocks_of, last_said
from mam.serve.pages.diffs import BYTES_READ, FILES_LISTED, LINE_LIMIT, read_diff
from tests.serve.pages.hostile import HIDDEN, HUGE, XSS, is_inert


@pytest.mark.parametrize("text", [*XSS, *HIDDEN])
def test_markdown_is_inert(text: str) -> None:
    assert is_inert(str(markdown.to_html(text)))
    assert is_inert(str(markdown.to_html(f"# {text}\n\n- **{text}**\n\n> {text}")))


@pytest.mark.parametrize("text", [*XSS, *HIDDEN])
def test_output_is_inert(text: str) -> None:
    assert is_inert(str(ansi.to_html(text)))
    assert is_inert(str(ansi.to_html(f"\x1b[1;31m{text}".encode("utf-8", "surrogatepass"))))


@pytest.mark.parametrize("text", [*XSS, *HIDDEN])
def test_every_block_of_a_conversation_is_inert(text: str) -> None:
    conversation = blocks_of([
        Said(text=text), Thought(text=text), Used(id="1", tool=text, verb=text, target=text, output=text),
        Changed(id="2", path=text, patch=f"+{text}"), Plan(steps=(Step(text=text, state=text),)), Asked(question=text),
        Notice(text=text), Line(text=text),
    ])  # fmt: skip
    assert conversation.blocks
    assert all(is_inert(str(block.body)) for block in conversation.blocks)


def test_links_leave_the_page_without_a_referrer() -> None:
    html = str(markdown.to_html("[there](https://example.org/?a=1&b=2)"))
    assert 'href="https://example.org/?a=1&amp;b=2" rel="noopener noreferrer nofollow" target="_blank"' in html


def test_hidden_characters_become_visible() -> None:
    assert r"\u202e" in str(markdown.to_html("a\u202eb"))
    assert (
        r"\u202e"
        in read_diff([b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+\xe2\x80\xaeb\n"]).files[0].lines[1].text
    )


def test_colours_become_classes_and_end_with_their_reset() -> None:
    html = str(ansi.to_html("\x1b[1;32mgood\x1b[0m plain \x1b[38;5;9mmany\x1b[39m \x1b[2Jcleared"))
    assert html == '<span class="t-bold t-green">good</span> plain many cleared'


def test_an_overwritten_line_shows_its_last_state() -> None:
    assert str(ansi.to_html("10 %\r50 %\r100 %\ndone")) == "100 %\ndone"


def test_an_escape_sequence_that_never_ends_hides_nothing_behind_it() -> None:
    assert "visible" in str(ansi.to_html("\x1b]0;title\x07visible"))


@pytest.mark.parametrize(
    "text", [HUGE, "*" * 200_000, "[" * 100_000, "> " * 50_000, "`" * 99_999, "|" * 99_999, "\x1b[" * 99_999]
)
def test_huge_and_nested_text_is_rendered(text: str) -> None:
    """A rendering whose time grows with the square of the length meets the time limit of the test."""
    assert markdown.to_html(text)
    assert is_inert(str(ansi.to_html(text)))


def test_a_diff_of_ten_thousand_files_keeps_few_lines() -> None:
    part = (
        "diff --git a/f{0} b/f{0}\nindex 1111111..2222222 100644\n--- a/f{0}\n+++ b/f{0}\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"
    )
    diff = read_diff(part.format(number).encode() for number in range(FILES_LISTED))
    assert (len(diff.files), diff.added, diff.removed, diff.is_cut) == (FILES_LISTED, 20_000, 10_000, False)
    assert sum(len(file.lines) for file in diff.files) < 500
    assert diff.files[-1].hidden == 4
    only = read_diff((part.format(number).encode() for number in range(FILES_LISTED)), "f9999")
    assert [file.path for file in only.files if file.lines] == ["f9999"]


def test_a_huge_diff_is_cut() -> None:
    head = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"
    assert read_diff([head, *[b"+" + b"y" * 99_999 + b"\n"] * (BYTES_READ // 100_000 + 2)]).is_cut
    assert read_diff([head, b"+" + HUGE.encode()]).files[0].lines[-1].text.endswith("more characters")
    assert len(read_diff([head, b"+" + HUGE.encode()]).files[0].lines[-1].text) < LINE_LIMIT + 100


def test_a_conversation_keeps_its_last_blocks() -> None:
    conversation = blocks_of(Said(text=f"word {at}") for at in range(BLOCKS_SHOWN + 10))
    assert (len(conversation.blocks), conversation.left_out) == (BLOCKS_SHOWN, 10)


def test_the_last_sentence_is_the_agents_last_paragraph() -> None:
    assert (
        last_said([Said(text="First.\n\nThen\nthis."), Said(text="you", by="user"), Notice(text="x")]) == "Then this."
    )
    assert last_said([]) == ""

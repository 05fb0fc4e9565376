"""Sending text to a pane: once, complete, submitted, without control characters, and only to the right pane."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.agents.screen_prompts import find_question
from mam.agents.send import strip_controls
from mam.errors import BadInput
from tests.agents.sessions import Sessions, Sink
from tests.cli.command import finish
from tests.waiting import await_that

pytestmark = pytest.mark.external

LONG = "".join(f"line {number}: \"quoted\" 'single' $HOME `x` \\ 한국어 … ;\n" for number in range(2000))
TEXTS = {
    "plain": "hello",
    "quotes": "say \"it\" and 'it' and `it` and $HOME and \\n and #{pid} and %s",
    "newlines": "one\ntwo\n\nthree\n",
    "trailing semicolon": "do this;",
    "semicolons": "; a ;; b \\;",
    "a key's name": "Enter",
    "a dash": "-l --help",
    "Korean": "테스트를 고쳐 주세요: 정렬 문제",
    "emoji and combining": "👩‍💻 e\u0301 \u202e",
    "tabs": "a\tb\t",
    "100 KB": LONG[:100_000],
}


@pytest.fixture
def raw(sessions: Sessions, sink: Sink) -> Sessions:
    """A session `claude` that forwards its input, and `claude-2` beside it."""
    sessions.start("claude-2", "cat")
    sessions.start("claude", *sink.command())
    sink.await_ready()
    return sessions


def test_every_text_arrives_whole_and_is_submitted(raw: Sessions, sink: Sink) -> None:
    assert len(LONG.encode()) > 100_000
    for what, text in TEXTS.items():
        assert raw.send("claude", text).code == 0, what
        expected = text.encode() + b"\r"
        assert sink.read(len(expected)) == expected, what
    assert sink.nothing_more()
    assert raw.tmux("capture-pane", "-p", "-t", "=claude-2:").strip() == ""


def test_a_text_of_the_command_line_arrives_unchanged(raw: Sessions, sink: Sink) -> None:
    assert raw.mam("agents", "send", "claude", "look; at 'this';").code == 0
    assert sink.read(17) == b"look; at 'this';\r"


def test_an_end_of_paste_in_the_text_ends_nothing(sessions: Sessions, sink: Sink) -> None:
    sessions.start("claude", *sink.command("bracketed"))
    sink.await_ready()
    await_that(lambda: "ready" in sessions.tmux("capture-pane", "-p", "-t", "=claude:"))

    assert sessions.send("claude", "before\x1b[201~\rrm -rf /\r\n\x03\x9b201~after").code == 0

    expected = b"\x1b[200~before[201~rm -rf /\n201~after\x1b[201~\r"
    assert sink.read(len(expected)) == expected
    assert sink.nothing_more()


def test_two_senders_do_not_mix(raw: Sessions, sink: Sink) -> None:
    texts = [letter * 20_000 for letter in "abc"]
    started = [raw.mam.start("agents", "send", "claude", text) for text in texts]
    assert [finish(process).code for process in started] == [0, 0, 0]
    came = sink.read(3 * 20_001).split(b"\r")
    assert sorted(came) == [b"", *(text.encode() for text in texts)]


def test_a_key_is_sent_once(raw: Sessions, sink: Sink) -> None:
    assert raw.send("claude", "hello", "--key", "k1").code == 0
    again = raw.send("claude", "hello", "--key", "k1", "--json")
    assert (again.code, again.json["sent"]) == (0, False)
    assert "was sent before" in again.stderr
    assert raw.send("claude", "other", "--key", "k2").code == 0
    assert sink.read(12) == b"hello\rother\r"
    assert sink.nothing_more()


def test_an_event_whose_sending_began_is_not_sent_again(raw: Sessions, sink: Sink) -> None:
    root = Path(raw.record("claude")["runtime"]["session_root"])
    (root / "sent.json").write_text('{"k": "begun"}', encoding="utf-8")
    raw.send("claude", "hello", "--key", "k").failed(1, "check its pane")
    assert sink.nothing_more()


# -- where nothing is sent -------------------------------------------------------------------------------------------


def test_a_pane_in_copy_mode_gets_no_text(raw: Sessions, sink: Sink) -> None:
    raw.tmux("copy-mode", "-t", "=claude:")
    raw.send("claude", "text").failed(1, "copy-mode")
    raw.tmux("send-keys", "-t", "=claude:", "-X", "cancel")
    assert raw.send("claude", "text").code == 0
    assert sink.read(5) == b"text\r"


def test_a_dead_pane_gets_no_text(sessions: Sessions) -> None:
    (sessions.mam.home / ".tmux.conf").write_text("set -g remain-on-exit on\n", encoding="utf-8")
    sessions.start("claude", "cat")
    companion = sessions.process("claude", "companion")
    os.kill(companion.pid, signal.SIGSTOP)
    sessions.tmux("send-keys", "-t", "=claude:", "C-d")
    await_that(lambda: sessions.tmux("display-message", "-p", "-t", "=claude:", "#{pane_dead}") == "1")
    sessions.send("claude", "text").failed(1, "has ended")
    os.kill(companion.pid, signal.SIGCONT)
    await_that(lambda: sessions.state("claude") == "stopped")


def test_nothing_is_typed_after_a_person_typed(raw: Sessions, sink: Sink) -> None:
    with raw.person("claude") as typing:
        typing(b"x")
        assert sink.read(1) == b"x"
        raw.send("claude", "text").failed(1, "A person typed", "try again in")
        assert raw.mam("agents", "send", "claude-2", "text").code == 0
    assert sink.nothing_more()


def test_a_person_who_has_left(raw: Sessions, sink: Sink) -> None:
    created = int(raw.tmux("display-message", "-p", "-t", "=claude:", "#{session_created}"))
    with raw.person("claude") as typing:
        # tmux counts in seconds, and the session must be older than the key.
        await_that(lambda: _typed_later(typing, raw, created))
    raw.send("claude", "text").failed(1, "A person typed")


def _typed_later(typing: object, sessions: Sessions, created: int) -> bool:
    assert callable(typing)
    typing(b"x")
    return int(sessions.tmux("display-message", "-p", "-t", "=claude:", "#{session_activity}")) > created


def test_nothing_is_typed_while_the_screen_shows_a_question(sessions: Sessions) -> None:
    sessions.start("claude", "sh", "-c", "echo 'Do you want to proceed?'; echo '❯ 1. Yes'; echo '  2. No'; exec cat")
    await_that(lambda: "2. No" in sessions.tmux("capture-pane", "-p", "-t", "=claude:"))
    sessions.send("claude", "text").failed(1, "shows a question", "1. Yes")


@pytest.mark.parametrize("text", ["", " \n", "\x1b\x07"])
def test_an_empty_text_is_rejected(raw: Sessions, text: str) -> None:
    raw.send("claude", text).failed(2, "nothing to send")


def test_wrong_arguments_are_usage_errors(raw: Sessions) -> None:
    raw.mam("agents", "send", "claude").failed(2)
    raw.mam("agents", "send", "claude", "two", "words").failed(2)
    raw.mam("agents", "send", "claude", "text", "--file", "x").failed(2)
    raw.mam("agents", "send", "claude", "--file", "/nowhere").failed(2)
    raw.mam("agents", "send", "claude", "--file", "-", stdin=b"\xff").failed(2, "UTF-8")
    raw.mam("agents", "send", "claud", "text").failed(1, "No live record")


# -- the parts -------------------------------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_only_control_characters_are_removed(text: str) -> None:
    kept = [letter for letter in text if letter in "\t\n" or not (ord(letter) < 32 or 127 <= ord(letter) < 160)]
    try:
        assert strip_controls(text).decode() == "".join(kept)
    except BadInput:
        assert not "".join(kept).strip()


@pytest.mark.parametrize(
    "screen",
    [
        "│ Do you want to proceed?\n│ ❯ 1. Yes\n│   2. No",
        "Would you like to run the following command?\n\n  $ rm x\n",
        "Overwrite? [y/N]",
        "Continue (yes/no/always)",
        "[sudo] password for me: ",
        "Enter passphrase for key '/x': ",
        "● 1. Yes, allow once\n  2. No",
        "△ Permission required\n  Allow once   Allow always   Reject",
        "Do you trust the files in this folder?",
        "Press Enter to continue",
        "  › Yes, and don't ask again",
    ],
)
def test_a_question_is_seen(screen: str) -> None:
    assert find_question(screen)


@pytest.mark.parametrize(
    "screen",
    [
        "",
        "$ ",
        "> hello\n\n● I have fixed the test. It asked for [y/N] before.\n\n\n╭──╮\n│ >  │\n╰──╯\n  ? for shortcuts\n\n",
        "● All green. Would you like me to push it?\n\n╭──╮\n│ >  │\n╰──╯\n  ? for shortcuts\n",
        "> 1. fix the test\n\n● Done.\n\n────\n> \n────\n  ? for shortcuts",
        "1. first\n2. second",
        "def allow(x):\n    return x",
        "password: checked\nall tests passed\n$ make\n$ ",
    ],
)
def test_a_screen_without_a_question_is_recognized(screen: str) -> None:
    assert find_question(screen) is None

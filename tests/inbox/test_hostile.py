"""Files that attack the parser: each gets its own error or is a prompt, and the file beside it becomes a job.

Each runs the real command in its own process, because the original bug ended the process.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.inbox.commands import WHERE, InboxCommand
from tests.inbox.world import World

if TYPE_CHECKING:
    from pathlib import Path

HEADS = {
    "brackets": "[" * 30_000,
    "brackets of a value": "agent: " + "[" * 30_000 + "]" * 30_000,
    "braces": "agent: " + "{a: " * 15_000,
    "lists in lists": "agent:\n " + "- " * 30_000,
    "complex keys": "? " * 30_000,
    "indentation": "\n".join(" " * depth + "a:" for depth in range(350)),
    "lines without number": "\n" * 4_000_000,
    "more than may be": "#" * 100_000 + "\n" + "[" * 100_000,
    "quotes": "agent: " + '"' * 60_000,
    "an open quote": 'agent: "' + "a" * 60_000,
    "tags": "agent: " + "!a " * 20_000,
    "aliases": "label: &a [x, x]\nagent: &b [*a, *a]\nafter: [*b, *b]",
    "an alias of itself": "artifacts: &a [*a]",
    "half a surrogate pair": r'label: "\ud800"',
    "half a pair in a list": r'artifacts: ["\udfff"]',
    "no character": r'label: "\UFFFFFFFF"',
    "NUL": r'label: "a\0b"',
    "a long number": "priority: " + "9" * 5_000,
    "an endless number": "timeout: 1e999",
    "a long version": "%YAML 1." + "9" * 5_000 + "\n--- #\nagent: shell",
    "a control character": "agent: a\x07",
}


NO_KEY_CAN_BE_READ = ("a control character", "an open quote", "no character")


@pytest.fixture
def inbox(tmp_path: Path) -> InboxCommand:
    return InboxCommand(tmp_path)


def printed_about(inbox: InboxCommand, file: str) -> list[str]:
    """The output of a run about this file; every run prints whole lines and no traceback."""
    ran = inbox("inbox", "once")
    assert ran.code in (0, 1, 7), ran.stderr
    assert all(line.startswith("mam: ") for line in ran.stderr.splitlines()), ran.stderr
    return [line for line in ran.stderr.splitlines() if file in line]


@pytest.mark.parametrize("name", HEADS)
def test_a_hostile_file_stops_no_other(inbox: InboxCommand, name: str) -> None:
    content = f"---\n{HEADS[name]}\n---\necho bad\n"
    inbox.drop(content, "bad.prompt.md")
    inbox.drop("echo good\n", "good.prompt.md")
    assert printed_about(inbox, "bad.prompt.md")
    assert "good" in inbox.outcome("good.done.md")
    (file,) = (inbox.here / "finished" / WHERE).glob("bad.*.md")
    outcome = file.read_text(encoding="utf-8")
    assert outcome.startswith(content)
    is_mams = HEADS[name].startswith(("agent", "label", "artifacts", "priority", "timeout"))
    if is_mams and name not in NO_KEY_CAN_BE_READ:  # otherwise it is a prompt, which the shell cannot run
        assert "drop it again" in outcome[len(content) :]
        assert inbox("list", "--json").json[0]["prompt"] == "echo good"
    assert inbox.left() == []


def test_twenty_hostile_files_at_once_stop_no_other(inbox: InboxCommand) -> None:
    """Variation: many in one batch, between good ones."""
    inbox.drop("echo before\n", "a.prompt.md")
    for number in range(20):
        inbox.drop(f"---\nagent: x\nlabel: {'[' * (29_000 + number)}\n---\ndo\n", f"b{number}.prompt.md")
    inbox.drop("echo behind\n", "c.prompt.md")
    assert len(printed_about(inbox, "must be one value, not a list")) == 20
    assert "before" in inbox.outcome("a.done.md")
    assert "behind" in inbox.outcome("c.done.md")


def test_a_hostile_file_in_a_store_of_rows(tmp_path: Path) -> None:
    """Variation: what passes the front matter's checks reaches the store's encoder."""
    world = World(tmp_path, "sqlite")
    world.drop("bad.prompt.md", "---\nartifacts: [" + "\\ud800, " * 5_000 + "a]\n---\n\ufdd0\uffff\U0010ffff\u2028 bad")
    world.drop("good.prompt.md", "good")
    world.steady()
    assert "good" in [job.prompt for job in world.all_jobs()]
    world.close()


def test_a_hostile_head_in_another_encoding_stops_no_other(inbox: InboxCommand) -> None:
    """Variation: with a byte order mark, and with CRLF line ends."""
    for mark, name in (("\ufeff", "marked"), ("", "plain")):
        inbox.drop(f"{mark}---\r\nagent: {'[' * 30_000}\r\n---\r\ndo\r\n", f"{name}.prompt.md")
    inbox.drop("echo good\n", "good.prompt.md")
    assert len(printed_about(inbox, "must be one value, not a list")) == 2
    assert "good" in inbox.outcome("good.done.md")


def test_a_file_that_an_earlier_version_died_of_is_put_away_at_the_next_start(inbox: InboxCommand) -> None:
    """The file has a row and was renamed before it is parsed."""
    inbox.drop(f"---\nagent: {'[' * 30_000}\n---\ndo\n", "bad.running.md")
    inbox.drop("echo good\n", "good.prompt.md")
    assert len(printed_about(inbox, "bad.prompt.md")) == 1
    assert "good" in inbox.outcome("good.done.md")
    assert "must be one value, not a list" in inbox.outcome("bad.error.md")
    inbox.drop("echo again\n", "again.prompt.md")
    assert printed_about(inbox, "bad") == []
    assert "again" in inbox.outcome("again.done.md")


def test_a_bug_over_one_file_stops_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such input is known, so the test makes the parser fail."""
    from mam.inbox import submit

    draft_from_file = submit.draft_from_file  # type: ignore[attr-defined]

    def fail(content: bytes, *rest: object) -> object:
        if b"bad" in content:
            raise IndexError
        return draft_from_file(content, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(submit, "draft_from_file", fail)
    world.drop("bad.prompt.md", "bad")
    world.drop("good.prompt.md", "good")
    world.steady()
    assert world.only_job().prompt == "good"
    outcome = (world.root / "finished" / WHERE / "bad.error.md").read_text()
    assert "mam cannot read it (IndexError); please report this with the file" in outcome


MIRRORED = {
    "brackets": '{"a": ' + "[" * 100_000,
    "nested metadata": '{"deep": ' + "[" * 700 + "]" * 700 + "}",
    "NaN": '{"n": NaN}',
    "an endless number": '{"n": 1e999}',
    "a long number": '{"n": ' + "9" * 5_000 + "}",
    "half a surrogate pair": r'{"n": "\ud800"}',
}


@pytest.mark.parametrize("name", MIRRORED)
def test_a_hostile_mirror_stops_no_start(inbox: InboxCommand, name: str) -> None:
    """Other programs can write into the mirror."""
    inbox.drop("---\nat: +2h\n---\necho later\n", "later.prompt.md")
    printed_about(inbox, "later")
    (folder,) = (inbox.here / ".queue" / "jobs").iterdir()
    record = json.loads((folder / "job.json").read_bytes())
    spoilt = json.dumps({**record, "metadata": "HERE"}).replace('"HERE"', MIRRORED[name])
    (folder / "job.json").write_text(spoilt)
    inbox.drop("echo good\n", "good.prompt.md")
    printed_about(inbox, "good")
    assert "good" in inbox.outcome("good.done.md")
    assert json.loads((folder / "job.json").read_bytes())["state"] == "queued"


def test_an_invalid_time_in_the_mirror_stops_no_pruning(inbox: InboxCommand) -> None:
    inbox.configure(queue="keep_days = 1")
    inbox.drop("echo first\n", "first.prompt.md")
    printed_about(inbox, "first")
    (folder,) = (inbox.here / ".queue" / "jobs").iterdir()
    record = json.loads((folder / "job.json").read_bytes())
    (folder / "job.json").write_text(json.dumps({**record, "updated_at": "9999-99-99T99:99:99Z"}))
    inbox.drop("echo good\n", "good.prompt.md")
    printed_about(inbox, "good")
    assert "good" in inbox.outcome("good.done.md")
    assert os.path.isdir(folder)

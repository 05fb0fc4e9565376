"""Every shell example of every page runs and prints the output that the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mam.__main__ import VERBS
from tests.docs.pages import ROOT, Reader, blocks
from tests.needs import need
from tests.postgres.server import PrivateServer
from tests.work.scripted_claude import SCRIPTED_CLAUDE

PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(page for folder in ("docs", "examples") for page in (ROOT / folder).rglob("*.md")),
    ],
    key=lambda page: str(page.relative_to(ROOT)),
)
DATABASE = "postgresql://me@db.example.org/work"
PROGRAMS = {
    # These replace programs that a reader has. Each does the least that its page needs.
    "claude": 'case "$*" in *--print*) read -r _; echo found >report.md; exec cat .answer;; esac\n'
    'while printf "> " && read -r line; do echo "you said: $line"; done',
    "talker": SCRIPTED_CLAUDE,
    "my-agent": "cat >/dev/null; echo my answer",
}
RUN_ELSEWHERE = {
    "examples/mosquitto/README.md": "tests/bus/test_example.py",
    "docs/inbox.md": "tests/docs/test_inbox.py",
    "docs/old-commands.md": "tests/scripts/test_quick_reference.py",
    "docs/protocol.md": "tests/docs/test_pages.py",
}
"""Pages whose `sh` blocks have a test of their own."""


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def reader(request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Short paths, because the sockets of tmux and PostgreSQL limit their length."""
    instead = {}
    if DATABASE in request.node.callspec.params["page"].read_text(encoding="utf-8"):
        running: PrivateServer = request.getfixturevalue("server")
        instead[DATABASE] = running.empty_database()
    with TemporaryDirectory(prefix="mam-page-", ignore_cleanup_errors=True) as folder:
        typing = Reader(Path(folder).resolve(), instead, PROGRAMS)
        yield typing
        typing.end_all()


def _generated(page: Path, text: str) -> bool:
    """The generated session of the README (tools/session.py)."""
    before, _, _ = page.read_text(encoding="utf-8").partition(text)
    return "<!-- commands: begin -->" in before and "<!-- commands: end -->" not in before


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text(encoding="utf-8")], ids=_named
)
def test_the_examples_of_a_page_print_what_it_shows(page: Path, reader: Reader) -> None:
    notes = [note for block in blocks(page) for note in block.notes]
    need(*(note.removeprefix("needs:").strip() for note in notes if note.startswith("needs:")))
    for block in blocks(page):
        if block.kind != "console" or _generated(page, block.text):
            continue
        for note in block.notes:
            if note == "afresh":
                reader.begin_afresh()
            elif note.startswith("before:"):
                reader.prepare(note)
        if block.is_run:
            for command, expected in block.steps:
                reader.check(command, expected)


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_no_example_is_left_out(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in ("console", "sh", "text", "json", "toml", "sql", "python", "mermaid", "markdown"), (
            block.kind
        )
        if block.kind == "console":
            assert block.text.startswith("$ ")
        if block.kind == "sh":
            assert page.name == "recipes.md" or _named(page) in RUN_ELSEWHERE
    consoles = "".join(block.text for block in blocks(page) if block.kind == "console")
    for line in page.read_text(encoding="utf-8").splitlines():
        assert not line.startswith("$ ") or line in consoles, f"looks like a command and is not run: {line}"


def test_what_is_not_run_names_targets_and_verbs_that_exist() -> None:
    """A test cannot run all tests, nor a server that runs until it is stopped."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    skipped = [block for page in PAGES for block in blocks(page) if not block.is_run]
    commands = [command.split() for block in skipped for command, _ in block.steps]
    assert commands
    assert {words[1] for words in commands if words[0] == "make"} <= targets
    assert {words[1] for words in commands if words[0] == "mam"} <= set(VERBS)


def test_the_signature_of_the_protocol(tmp_path: Path) -> None:
    """docs/protocol.md: openssl computes the signature of the test message."""
    import subprocess

    need("openssl")
    (command,) = (block.text for block in blocks(ROOT / "docs/protocol.md") if block.kind == "sh")
    signed, sent = [block.text for block in blocks(ROOT / "docs/protocol.md") if block.kind == "json"][-2:]
    (tmp_path / "signed").write_text(signed.removesuffix("\n"), encoding="utf-8")
    ran = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-1] in sent

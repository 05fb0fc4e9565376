"""The command itself: help, version, mistakes, and broken surroundings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mam import __version__
from mam.__main__ import FIRST_VERBS, MORE_VERBS, VERBS, load, run
from mam.cli.args.parser import Parser
from tests.cli.command import Mam


def test_help_shows_ten_verbs_first_and_the_rest_under_more(mam: Mam) -> None:
    shown = mam("--help")
    assert shown.code == 0
    assert shown.stderr == ""
    first, _, more = shown.out.partition("more:")
    assert len(FIRST_VERBS) == 10
    for verb in FIRST_VERBS:
        assert f"\n  {verb} " in first
    for verb in MORE_VERBS:
        assert f"\n  {verb} " in more
    assert mam().out == mam("-h").out == mam("help").out == shown.out
    assert max(map(len, shown.out.splitlines())) <= 120


def test_every_verb_explains_itself_without_a_store(
    mam: Mam, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(mam.here)
    for verb in VERBS:
        assert run([verb, "--help"]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        assert shown.out.startswith(f"usage: mam {verb} ")
        assert (load(verb).__doc__ or "").partition("\n")[0] in " ".join(shown.out.split())
        for option in ("--store", "--registry-dir", "--json", "--help"):
            assert option in shown.out, verb
        assert run(["help", verb]) == 0
        assert capsys.readouterr().out == shown.out
    assert mam("help", "pick").out == mam("pick", "--help").out != ""
    assert list(mam.here.iterdir()) == []


def test_every_module_of_a_verb_is_a_verb() -> None:
    folder = Path(load("list").__file__ or "").parent
    verbs = {file.stem for file in folder.glob("*.py") if "\ndef run(" in file.read_text()}
    assert verbs == set(VERBS)


def test_version_prints_the_version(mam: Mam) -> None:
    assert mam("--version").line == f"mam {__version__}"


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("lst",), "did you mean list?"),
        (("qqqqq",), "mam --help"),
        (("--frobnicate",), "--frobnicate"),
        (("list", "--jsn"), "did you mean --json?"),
        (("list", "--status"), "--status"),
        (("list", "extra"), "'extra'"),
        (("list", "--json=yes"), "--json"),
        (("list", "--stat", "pending"), "--stat"),
    ],
)
def test_mistakes_are_one_line_with_a_way_out(mam: Mam, words: tuple[str, ...], word: str) -> None:
    mam(*words).failed(2, word)


def test_a_closed_pipe_is_exit_141(mam: Mam) -> None:
    mam("register", "--prompt-file", "-", "--agent", "shell", stdin=b"x" * 1024 * 1024)
    process = mam.start("list", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141
    process.stderr.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_an_unwritable_output_is_an_error(mam: Mam) -> None:
    job = mam.register()
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "mam", "get", job], cwd=mam.here, env=mam.env, stdout=full, stderr=subprocess.PIPE
        )
    assert ran.returncode == 9
    assert b"No space left" in ran.stderr
    assert ran.stderr.count(b"\n") == 1


def test_closed_streams_cause_no_traceback(mam: Mam) -> None:
    job = mam.register()
    for redirection in (">&-", "2>&-", ">&- 2>&-", "<&-"):
        command = f'exec "$0" -m mam get {job} {redirection}'
        ran = subprocess.run(
            ["sh", "-c", command, sys.executable], cwd=mam.here, env=mam.env, capture_output=True, text=True
        )
        assert "Traceback" not in ran.stderr, redirection


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_an_interrupt_ends_quietly(mam: Mam) -> None:
    job = mam.register()
    process = mam.start("wait", job, "--timeout", "50")
    # Interrupts before Python's own handler is in place would end the process by the signal itself.
    _until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def _until_it_waits(pid: int) -> None:
    """Until the process has opened the registry's lock and sleeps: its journal is open by then."""
    while True:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
        except FileNotFoundError:
            continue
        if any("journal" in link or "inotify" in link for link in links):
            return


def test_a_bug_is_one_line_and_a_traceback_only_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_options: object) -> int:
        raise KeyError("inside")

    monkeypatch.setattr(load("list"), "run", broken)
    monkeypatch.delenv("MAM_DEBUG", raising=False)
    assert run(["list"]) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "bug" in shown
    monkeypatch.setenv("MAM_DEBUG", "1")
    assert run(["list"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (PermissionError(13, "Permission denied", "/x/y"), 9, "mam: /x/y: Permission denied\n"),
        (OSError(28, "No space left on device"), 9, "mam: No space left on device\n"),
        (OSError(30, "Read-only file system", "/x"), 9, "mam: /x: Read-only file system\n"),
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_every_exception_becomes_an_exit_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_options: object) -> int:
        raise error

    monkeypatch.setattr(load("list"), "run", broken)
    assert run(["list"]) == code
    assert capsys.readouterr().err == said


HEAVY = {
    "argparse", "dataclasses", "datetime", "hashlib", "inspect", "logging", "pathlib", "rich", "shutil", "sqlite3",
    "subprocess", "tempfile", "threading", "tomllib", "typing",
}  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("pick", "-s", "shell"),
        ("heartbeat",),
        ("publish", "progress"),
        ("status",),
        ("get",),
        ("complete", "--attempt", "1"),
    ],
)
def test_hot_verbs_import_nothing_heavy(mam: Mam, words: tuple[str, ...]) -> None:
    """Every hook of an agent starts a process; what it imports is the latency that people feel."""
    config = mam.home / "config/mam/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("lock_wait_seconds = 9\n")
    job = mam.register()
    if words[0] != "pick":
        mam("pick", "-s", "shell")
        words = (words[0], "--job", job, *words[1:])
    script = (
        "import sys; before = set(sys.modules); from mam.__main__ import run; code = run(sys.argv[1:]);"
        "print(sorted(set(sys.modules) - before), file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=mam.here, env=mam.env, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    loaded = {name.strip("'") for name in ran.stderr.strip().strip("[]").split(", ")}
    assert not loaded & HEAVY


def _help_pages() -> list[tuple[str, ...]]:
    pages: list[tuple[str, ...]] = [()]
    for verb in VERBS:
        parser = Parser(verb, "")
        load(verb).add_arguments(parser)
        pages += [(verb,), *((verb, subverb) for subverb in parser.subverbs)]
    return pages


@pytest.mark.parametrize("columns", [60, 80, 100, 120])
def test_help_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for page in _help_pages():
        assert run([*page, "--help"]) == 0
        for line in capsys.readouterr().out.splitlines():
            assert len(line) <= columns, page


def test_help_in_a_pipe_has_80_columns(mam: Mam) -> None:
    assert max(map(len, mam("--help").out.splitlines())) <= 80
    assert all(
        line.startswith("  ") for line in mam("--help").out.partition("more:\n")[2].split("\n\n")[0].splitlines()
    )

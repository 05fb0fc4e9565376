"""A test kills every verb that writes, and the other verbs write nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam.__main__ import VERBS, load, run
from mam.cli.args.parser import Parser
from mam.registry import Registry
from tests.faults.store_kinds import STORE_KINDS
from tests.faults.verbs import COMMANDS, ELSEWHERE, GROUPS, READERS, SAME, parted

ROOT = Path(__file__).resolve().parents[2]


def every_verb() -> set[str]:
    """The verbs of the command line, each subverb as one."""
    found = set()
    for verb in VERBS:
        parser = Parser(verb, "")
        load(verb).add_arguments(parser)
        found |= {f"{verb} {name}" for name in parser.subverbs} or {verb}
    return found


def killed_by_name(commands: dict[str, str]) -> set[str]:
    every = [parted(command)[1] for command in commands.values()]
    return {" ".join(words[: 2 if words[0] in GROUPS else 1]) for words in every}


def test_no_verb_is_missing() -> None:
    killed = killed_by_name(COMMANDS) | ELSEWHERE.keys()
    assert every_verb() == killed | READERS | SAME.keys()
    assert not killed & READERS
    assert {*SAME.values()} <= killed


@pytest.mark.parametrize("test", sorted({*ELSEWHERE.values()}))
def test_those_that_are_killed_elsewhere_are_killed_there(test: str) -> None:
    assert "kill" in (ROOT / "tests" / test).read_text(encoding="utf-8").lower()


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    here = folder / "here"
    (here / ".mam").mkdir(parents=True)
    (here / ".mam/config.toml").write_text('on_idle = "stop"\n', encoding="utf-8")
    for name, value in {"HOME": str(here / "home"), "MAM_STORE": str(here / "jobs")}.items():
        monkeypatch.setenv(name, value)
    (here / "home").mkdir()
    monkeypatch.chdir(here)
    STORE_KINDS["files"].make(here)
    return here


READING = ("list", "get {job}", "result {job}", "logs {job}", "explain {job}", "wait {job}", "where", "agents list",
           "inbox status", "config list", "brief {job}", "output {job}")  # fmt: skip


def test_readers_write_nothing(place: Path) -> None:
    store = STORE_KINDS["files"].open(place)
    job_id = Registry(store).register(prompt="p", agent="codex").job.job_id
    Registry(store).complete(job_id, result="r")
    store.close()

    def everything() -> dict[str, bytes]:
        """Without the audit log, which its readers bring up to date, and the shared memory of SQLite."""
        files = [file for file in place.rglob("*") if file.is_file() and file.suffix != ".lock"]
        return {
            str(file): file.read_bytes()
            for file in files
            if not file.name.endswith("-shm") and "delegate_job_logs" not in file.parts
        }

    run(["list"])  # the first command remembers the store
    before = everything()
    for words in READING:
        run(words.format(job=job_id).split())
        assert everything() == before, words

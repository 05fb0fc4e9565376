"""The model, arguments and variables with which a coding agent is started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from mam.config.file import check_values
from mam.config.settings import Config
from mam.errors import BadConfig, BadInput
from mam.stores.memory import MemoryStore
from tests.unit.jobs import pending
from tests.work.agent_facts import AGENT_FACTS, TESTED, WITH_MODELS
from tests.work.replay import PROGRAMS, recorded
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

    from mam.jobs.record import Job

HELP = "--print --sandbox --format --model --known"
_PROGRAM = """#!/bin/sh
case "$*" in *--help*) echo '{help}'; exit 0;; esac
printf '%s\\n' "$@" >{folder}/argv
env >{folder}/env
cat >/dev/null
cat {folder}/out
"""


class Started:
    """One agent whose program keeps how it was started, and then prints a recording."""

    def __init__(self, agent: str, folder: Path) -> None:
        self.agent, self._folder = agent, folder
        program = folder / PROGRAMS[agent]
        program.write_text(_PROGRAM.format(help=HELP, folder=folder))
        program.chmod(0o755)
        (folder / "out").write_text(str(recorded(f"{agent}-write")["out"]))

    def job(self, settings: dict[str, Any], **choices: Any) -> Job:
        config = Config(agents=check_values({"agents": {self.agent: settings}}, "file")["agents"])
        return Harness(MemoryStore(), self._folder, config).ended("write", agent=self.agent, **choices)

    def argv(self) -> list[str]:
        return (self._folder / "argv").read_text().splitlines()

    def env(self) -> list[str]:
        return (self._folder / "env").read_text().splitlines()

    def is_started(self) -> bool:
        return (self._folder / "argv").exists()


@pytest.fixture(params=TESTED)
def started(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return Started(request.param, tmp_path)


def test_the_settings_of_an_agent_reach_it_and_its_record(started: Started) -> None:
    job = started.job({"args": ["--known", "x"], "env": {"REGION": "here"}})

    assert job.status == "completed", job.reason
    argv = started.argv()
    assert argv[argv.index("--known") + 1] == "x"
    assert "REGION=here" in started.env()
    about = (job.run or {})["agent"]
    assert (about["args"], about["env"]) == (["--known", "x"], ["REGION"])


@pytest.mark.parametrize("started", WITH_MODELS, indirect=True)
@pytest.mark.parametrize(("of_job", "model"), [(None, "one"), ("two", "two")])
def test_the_model_of_a_job_wins_over_that_of_the_settings(started: Started, of_job: str | None, model: str) -> None:
    job = started.job({"model": "one"}, model=of_job)

    assert job.status == "completed", job.reason
    argv = started.argv()
    assert argv[argv.index("--model") + 1] == model
    assert (job.run or {})["agent"]["model"] == model


def test_an_option_that_the_agent_does_not_know_is_rejected_before_it_starts(started: Started) -> None:
    rejects(started, "--unknwon", "knows no option --unknwon")


def test_an_option_that_mam_sets_is_rejected_before_the_agent_starts(started: Started) -> None:
    option = AGENT_FACTS[started.agent].option
    rejects(started, f"{option}=x", f"mam sets {option}")


@pytest.mark.parametrize("started", WITH_MODELS, indirect=True)
def test_a_model_among_the_arguments_is_rejected_before_the_agent_starts(started: Started) -> None:
    rejects(started, "--model=x", "mam sets --model")


def rejects(started: Started, word: str, said: str) -> None:
    job = started.job({"args": [word]})

    assert job.status == "error"
    assert said in str(job.reason)
    assert not started.is_started()


@pytest.mark.parametrize("agent", ["shell", *(name for name in TESTED if name not in WITH_MODELS)])
def test_an_agent_without_models_rejects_one(agent: str, tmp_path: Path) -> None:
    job = Harness(MemoryStore(), tmp_path).ended("true", agent=agent, model="one")

    assert job.status == "error"
    assert "takes no model" in str(job.reason)


@pytest.mark.parametrize("name", ["", "-x", "a b", "a\nb"])
def test_an_invalid_model_name_is_rejected(name: str) -> None:
    with pytest.raises(BadInput):
        pending(model=name)


@pytest.mark.parametrize(
    "table",
    [
        {"shell": {}}, {"codex": "x"}, {"codex": {"mdoel": "x"}}, {"codex": {"model": "-x"}}, {"codex": {"args": [5]}},
        {"codex": {"args": "x"}}, {"codex": {"env": {"MAM_STORE": "x"}}}, {"codex": {"env": {"A": 5}}},
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(BadConfig, match="agent"):
        check_values({"agents": table}, "file")

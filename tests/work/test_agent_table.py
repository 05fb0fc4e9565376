"""The table of agents: every row is complete, and an incomplete row lists what it lacks."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from mam.agent_table import AGENTS, CODING_AGENTS, AgentKind, load
from mam.config.settings import Config
from mam.conversation.reader import ConversationReader
from mam.work.adapters import load_adapter
from mam.work.reports.report import Reader
from tests.real_agents import record
from tests.real_agents.homes import HOMES
from tests.work.agent_facts import AGENT_FACTS, SCENES, missing_recordings
from tests.work.replay import KEPT

HALF_ADDED = AgentKind(
    name="half-added",
    adapter="mam.work.adapters.half_added",
    program="half-added",
    reader="mam.work.reports.claude_code:HalfAddedReader",
)


def missing_parts(kind: AgentKind) -> list[str]:
    """What has to be written before mam can run this agent, one line each."""
    missing = [
        f"the row has no {field}"
        for field in ("package", "reader", "conversation", "login")
        if not getattr(kind, field)
    ]
    missing += _missing_in_adapter(kind)
    for field, target in (("reader", kind.reader), ("conversation", kind.conversation), ("hooks", kind.hooks)):
        if target and not _exists(target):
            missing.append(f"{field}: there is no {target}")
    if names := missing_recordings(kind.name):
        missing.append(f"tests/work/transcripts lacks {', '.join(names)}")
    return missing + _missing_in_tests(kind)


def _missing_in_tests(kind: AgentKind) -> list[str]:
    """The other tests skip an agent until its parts are here, so this is the one place that reports them."""
    installed = json.loads((KEPT.parents[1] / "real_agents/package.json").read_text("utf-8"))["dependencies"]
    has = {
        "tests/work/agent_facts.py has no row for it": kind.name in AGENT_FACTS,
        "tests/real_agents/homes.py has no home for it": kind.name in HOMES,
        f"tests/real_agents/package.json does not install {kind.package or 'it'}": kind.package in installed,
    }
    return [text for text, is_there in has.items() if not is_there]


def _missing_in_adapter(kind: AgentKind) -> list[str]:
    try:
        module = import_module(kind.adapter)
    except ModuleNotFoundError:
        return [f"adapter: there is no module {kind.adapter}"]
    return [f"{kind.adapter} has no {name}" for name in ("adapter", "HELP", "FLAGS") if not hasattr(module, name)]


def _exists(target: str) -> bool:
    try:
        load(target)
    except (ModuleNotFoundError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("name", CODING_AGENTS)
def test_every_coding_agent_is_complete(name: str) -> None:
    assert missing_parts(CODING_AGENTS[name]) == []


@pytest.mark.parametrize("name", CODING_AGENTS)
def test_the_reader_is_a_report_reader(name: str) -> None:
    assert isinstance(load(CODING_AGENTS[name].reader)(), Reader)


@pytest.mark.parametrize("name", CODING_AGENTS)
def test_the_conversation_reader_is_a_conversation_reader(name: str) -> None:
    assert isinstance(load(CODING_AGENTS[name].conversation)(), ConversationReader)


@pytest.mark.parametrize("name", AGENTS)
def test_the_adapter_has_the_name_of_its_row(name: str) -> None:
    assert load_adapter(name, Config()).name == name


def test_every_scene_is_recorded() -> None:
    assert tuple(record.SCENES) == SCENES


def test_a_half_added_agent_lists_what_is_missing() -> None:
    *missing, recordings = sorted(missing_parts(HALF_ADDED), key=lambda line: "transcripts" in line)

    assert missing == [
        "the row has no package",
        "the row has no conversation",
        "the row has no login",
        "adapter: there is no module mam.work.adapters.half_added",
        "reader: there is no mam.work.reports.claude_code:HalfAddedReader",
        "tests/work/agent_facts.py has no row for it",
        "tests/real_agents/homes.py has no home for it",
        "tests/real_agents/package.json does not install it",
    ]
    assert recordings.startswith("tests/work/transcripts lacks half-added.help.json, half-added-text.out, ")

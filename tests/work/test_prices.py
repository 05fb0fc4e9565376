"""What tokens cost by the user's prices; mam never presents such a cost as one that the agent reported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mam.config.settings import Config, load_config
from mam.errors import BadConfig
from mam.stores.memory import MemoryStore
from mam.work.reports.report import Report, token_cost
from tests.cli.command import Mam
from tests.work.commands import mam
from tests.work.replay import Replay, recorded
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["mam"]

PRICES = {"input": 1.25, "cached": 0.125, "output": 10.0}
TOKENS = {"input": 200, "cached": 22, "output": 44}
TABLE = "{input = 1.25, cached = 0.125, output = 10}"


def test_each_kind_of_token_has_its_price() -> None:
    assert token_cost({"input": 1_000_000, "cached": 0, "output": 0}, PRICES) == 1.25
    assert token_cost({"input": 0, "cached": 1_000_000, "output": 0}, PRICES) == 0.125
    assert token_cost({"input": 0, "cached": 0, "output": 1_000_000}, PRICES) == 10.0
    assert token_cost(TOKENS, PRICES) == 0.00069275


def test_cached_tokens_cost_as_much_as_input_by_default() -> None:
    assert token_cost({"input": 0, "cached": 1_000_000, "output": 0}, {"input": 2, "output": 9}) == 2.0


@pytest.mark.parametrize("tokens", [{}, {"input": 5}, {"output": 5}, {"cached": 5, "output": 5}])
def test_incomplete_token_counts_have_no_cost(tokens: dict[str, int]) -> None:
    assert token_cost(tokens, PRICES) is None


def test_a_price_of_zero_gives_a_cost_of_zero() -> None:
    report = Report()
    report.count(**TOKENS)
    assert report.to_json({"input": 0, "output": 0}) == {"tokens": TOKENS, "cost_usd": 0.0, "cost_from": "prices"}


def test_without_prices_it_is_unknown() -> None:
    report = Report()
    report.count(**TOKENS)
    assert report.to_json() == {"tokens": TOKENS, "cost_usd": None}


@pytest.mark.parametrize("told", [0, 0.5])
def test_a_cost_that_the_agent_printed_is_not_computed_again(told: float) -> None:
    report = Report()
    report.count(**TOKENS)
    report.cost(told)
    assert report.to_json(PRICES) == {"tokens": TOKENS, "cost_usd": told}


def test_an_agent_without_token_counts_has_no_cost() -> None:
    assert Report().to_json(PRICES) == {}


@pytest.mark.parametrize(
    ("agent", "prices", "cost", "mark"),
    [
        ("codex", {"codex": PRICES}, 0.00069275, "prices"),
        ("codex", {"claude-code": PRICES}, None, None),
        ("claude-code", {"claude-code": PRICES}, 0.0012666, None),
    ],
)
def test_the_record_has_the_cost_by_the_users_prices(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    prices: dict[str, dict[str, float]],
    cost: float | None,
    mark: str | None,
) -> None:
    replay = Replay(agent, tmp_path)
    monkeypatch.setenv("PATH", f"{replay.folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    replay.plays(recorded(f"{agent}-write", files=["notes.txt"]))

    job = Harness(MemoryStore(), tmp_path, Config(prices=prices)).ended("write the notes", agent=agent)

    assert job.status == "completed", job.reason
    assert job.run is not None
    about = job.run["agent"]
    assert (about["tokens"], about["cost_usd"], about.get("cost_from")) == (TOKENS, cost, mark)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("prices = 1", "prices must be a table"),
        ("[prices]\ncodex = 1", "prices.codex must be a table"),
        ("[prices]\ninput = 1\noutput = 1", "prices.input must be a table"),
        ("[prices.codex]", "input is missing"),
        ("[prices.codex]\ninput = 1", "output is missing"),
        ("[prices.codex]\noutput = 1", "input is missing"),
        ("[prices.codex]\ninput = 1\noutptu = 1", "'outptu' is not a setting of prices.codex (did you mean output?)"),
        ("[prices.codex]\ninput = -1\noutput = 1", "prices.codex: input must be a number between 0 and 100000"),
        ("[prices.codex]\ninput = 1\noutput = nan", "prices.codex: output must be a number between 0 and 100000"),
        ("[prices.codex]\ninput = inf\noutput = 1", "prices.codex: input must be a number between 0 and 100000"),
        ("[prices.codex]\ninput = 1\noutput = true", "prices.codex: output must be a number between 0 and 100000"),
        ('[prices.codex]\ninput = 1\noutput = "1"', "prices.codex: output must be a number between 0 and 100000"),
        ("[prices.codex]\ninput = 1\ncached = -0.1\noutput = 1", "prices.codex: cached must be a number between"),
        ('[prices."a b"]\ninput = 1\noutput = 1', "prices: 'a b' is not a name"),
        ('[prices."\\u001b[31m"]\ninput = 1\noutput = 1', "is not a name"),
    ],
)
def test_an_invalid_price_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, word: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    monkeypatch.setenv("MAM_CONFIG", str(file))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    with pytest.raises(BadConfig) as error:
        load_config()

    assert word in str(error.value)
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_they_are_set_together_and_changed_one_by_one(mam: Mam) -> None:
    mam("config", "set", "prices.codex", TABLE)
    mam("config", "set", "prices.codex.cached", "0.5")

    rows = {row["key"]: row["value"] for row in mam("config", "list", "--json").json}
    assert {key: value for key, value in rows.items() if key.startswith("prices")} == {
        "prices.codex.input": 1.25, "prices.codex.cached": 0.5, "prices.codex.output": 10,
    }  # fmt: skip
    assert mam("config", "get", "prices.codex.output").line == "10"
    assert mam("config", "get", "prices.codex", "--json").json["value"] == {"input": 1.25, "cached": 0.5, "output": 10}
    mam("config", "unset", "prices.codex.output").failed(2, "output is missing")
    mam("config", "unset", "prices.codex.cached")
    mam("config", "unset", "prices.codex")
    assert "prices" not in (mam.home / "config/mam/config.toml").read_text()


def test_all_prices_of_an_agent_come_from_one_file(mam: Mam) -> None:
    (mam.here / ".mam").mkdir(mode=0o700)
    mam("config", "set", "--project", "prices.codex", TABLE)
    mam("config", "set", "--project", "prices.other", TABLE)
    mam("config", "set", "prices.codex", "{input = 3, output = 4}")
    mam("trust")

    rows = {row["key"]: (row["value"], row["source"]) for row in mam("config", "list", "--json").json}
    assert rows["prices.codex.input"] == (3, "user")
    assert "prices.codex.cached" not in rows
    assert rows["prices.other.cached"] == (0.125, "project")
    assert mam("config", "get", "prices.codex.cached").line == ""

"""The tables `[prices.NAME]` of a file of settings: what the tokens of an agent cost that tells no cost itself."""

from __future__ import annotations

from mam.config.file import check_table
from mam.config.settings import Setting
from mam.config.tables import is_agent_name
from mam.errors import BadConfig

_LIMITS = (0, 100_000)
_EXAMPLE = "{input = 1.25, output = 10}"

PRICE = (
    Setting(
        name="input", kind=float, limits=_LIMITS,
        meaning="US dollars for a million tokens that the model read and had not kept from before.",
    ),
    Setting(
        name="cached", kind=float, limits=_LIMITS,
        meaning="The same for tokens that it had kept; what `input` says if unset.",
    ),
    Setting(
        name="output", kind=float, limits=_LIMITS,
        meaning="The same for tokens that the model wrote, its reasoning among them.",
    ),
)  # fmt: skip
"""What a table `[prices.NAME]` may say."""


def check_prices(tables: dict[str, object], file: str) -> None:
    for agent, table in tables.items():
        if not is_agent_name(agent):
            raise BadConfig(file=file, problem=f"prices: {agent[:80]!a} is not a name: letters, digits, . _ and -")
        name = f"prices.{agent}"
        if not isinstance(table, dict):
            raise BadConfig(file=file, problem=f"{name} must be a table, such as {_EXAMPLE}")
        check_table(name, PRICE, table, file)
        for key in ("input", "output"):
            if key not in table:  # half a price makes a cost that is too low, and nobody would see it
                raise BadConfig(file=file, problem=f"{name}: {key} is missing; give both, as in {_EXAMPLE}")

"""docs/protocol.md agrees with the code, byte by byte."""

from __future__ import annotations

import re
from pathlib import Path

from mam.events.event import DETAIL_LIMIT, EVENTS
from mam.events.signing import SIGNATURE
from mam.events.wire import DETAIL_WHEN_LONG, SIZE_LIMIT, TRUNCATED, parse_wire, to_wire

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")


def _block(behind: str) -> str:
    found = re.search(r"```\w+\n(.*?)\n```", PAGE[PAGE.index(behind) :], re.DOTALL)
    assert found is not None
    return found[1]


def test_the_message_to_test_with_is_the_one_that_is_sent() -> None:
    token, zeroed, sent = _block("The token:"), _block("What is signed:").encode(), _block("What is sent:").encode()

    payload = parse_wire(sent, token)

    assert to_wire(payload, token) == sent
    assert zeroed.count(b"0" * 64) == 1
    assert len(sent) == len(zeroed)


def test_the_codes_and_names_are_those_of_the_code() -> None:
    for number in (SIZE_LIMIT, DETAIL_LIMIT, DETAIL_WHEN_LONG):
        assert f"{number:,}" in PAGE or str(number) in PAGE
    for word in (*EVENTS, SIGNATURE, TRUNCATED):
        assert f"`{word}`" in PAGE or f'"{word}"' in PAGE or f"data.{word}`" in PAGE

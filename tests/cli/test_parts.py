"""The helpers of the command line, each by itself."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.__main__ import VERBS, load
from mam.cli.args.full_parser import parse_with_argparse
from mam.cli.args.parser import Parser
from mam.cli.render.streams import json_text
from mam.cli.render.text import first_line, many_lines, one_line
from mam.errors import BadInput, MamError
from mam.util.human_time import format_age, parse_duration, parse_since, parse_when

WORDS = [
    "x", "y", "", "--json", "--json=1", "--job", "--job=y", "--job=", "-s", "-sx", "-s=x", "--status", "error",
    "--attempt", "3", "-3", "--", "-", "--limit", "--reason", "r", "--lease", "9s", "--lease=9s", "--detail",
    "d d", "-d d", "--nope", "-x", "--at", "+2h", "--artifact", "--artifact=a", "--retryable", "--export",
    "--tail", "--set", "--since", "--wait",
]  # fmt: skip


def declared(verb: str) -> Parser:
    parser = Parser(verb, "")
    load(verb).add_arguments(parser)
    parser.add_argument_group("shared").add_argument("--json", action="store_true", help="json")
    return parser


def through_argparse(parser: Parser, words: list[str]) -> SimpleNamespace:
    """Words behind -- are removed before either parser reads the arguments."""
    command = {}
    if parser.takes_command:
        cut = words.index("--") if "--" in words else None
        command = {"command": None if cut is None else words[cut + 1 :]}
        words = words[:cut]
    options = parse_with_argparse(parser, words)
    options.__dict__.update(command)
    return options


def outcome(read: object) -> object:
    """The options, or that there were none."""
    try:
        return vars(read())  # type: ignore[operator]
    except MamError:
        return None


PLAIN_VERBS = [verb for verb in VERBS if not declared(verb).subverbs]
"""Those that do not leave their words to a verb of a verb."""


@given(verb=st.sampled_from(PLAIN_VERBS), words=st.lists(st.sampled_from(WORDS), max_size=6))
def test_the_quick_parser_never_disagrees_with_the_real_one(verb: str, words: list[str]) -> None:
    quick = outcome(lambda: declared(verb).read(words))
    assert quick == outcome(lambda: through_argparse(declared(verb), words))


@given(st.text())
def test_text_for_people_is_harmless_and_safe_text_stays(text: str) -> None:
    shown = one_line(text)
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert one_line(shown) == shown
    assert many_lines(text).count("\n") == text.count("\n")
    shown.encode()


@given(st.recursive(st.text() | st.none() | st.integers(), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_stays_the_same_json(value: object) -> None:
    for indent in (None, 2):
        text = json_text(value, indent)
        assert json.loads(text) == value
        assert one_line(text.replace("\n", "")) == text.replace("\n", "")


def test_escapes_are_visible() -> None:
    assert one_line("a\x1b[1m\n\x9b\u202eb한") == r"a\x1b[1m\n\x9b\u202eb한"
    assert first_line("\n\n  한 줄  \n둘") == "한 줄"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("5min", 300), ("2h", 7200), ("1.5d", 129600), ("0", 0)]
)
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1", "1x", "1 h", "nan", "inf", "1e9", "1.2.3", ".", "١", "9999999999"])
def test_an_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(BadInput):
        parse_duration(text)


def test_points_in_time_are_parsed() -> None:
    now = 1_000_000_000_000
    assert parse_when("+2h", now) == parse_when("2h", now) == now + 7_200_000
    assert parse_when("2001-09-09T01:46:40Z", 0) == parse_when("2001-09-09T10:46:40+09:00", 0) == now
    assert parse_since("40s", now) == "2001-09-09T01:46:00Z"
    assert parse_since("2001-09-09T10:46:40+09:00", 0) == "2001-09-09T01:46:40Z"
    assert [format_age(ms) for ms in (-5, 59_000, 60_000, 7_200_000, 200_000_000)] == ["0s", "59s", "1m", "2h", "2d"]

"""Every error has a message and an exit code."""

from __future__ import annotations

import pickle
import string

import pytest
from tools.reference import error_classes

from mam import errors
from mam.errors import MamError

CODES = {1, 2, 3, 4, 5, 6, 7, 8, 9}
"""CONTRACT section 8, without success."""

EXPECTED = {
    "UnknownJob": 1, "IllegalMove": 1, "Refused": 1, "UnknownStatus": 1, "BadInput": 2, "NothingToPick": 3,
    "ClaimLost": 4, "TimedOut": 5, "AmbiguousId": 6, "StoreUnavailable": 9, "StoreMissing": 9,
}  # fmt: skip

KINDS = error_classes()


def _facts(kind: type[MamError]) -> dict[str, object]:
    """Something for every name in the sentence: a number where it is formatted as one, else a word."""
    fields = ((name, form) for _, name, form, _ in string.Formatter().parse(kind.__doc__ or "") if name)
    return {name: 17 if form else f"<{name}>" for name, form in fields}


def test_the_docstring_is_a_sentence_that_takes_its_facts() -> None:
    for kind in KINDS:
        assert kind.__doc__, f"{kind.__name__} has no sentence"
        facts = _facts(kind)

        error = kind(**facts)

        assert all(str(value) in str(error) for value in facts.values()), kind.__name__
        assert "{" not in str(error), kind.__name__
        assert "\n" not in str(error), kind.__name__


def test_the_exit_code_is_one_of_the_contract() -> None:
    assert {kind.__name__: kind.exit_code for kind in KINDS if kind.exit_code not in CODES} == {}


def test_scripts_see_the_code_they_were_promised() -> None:
    assert {name: vars(errors)[name].exit_code for name in EXPECTED} == EXPECTED


def test_an_error_travels_between_processes() -> None:
    for kind in KINDS:
        error = kind(**_facts(kind))

        again = pickle.loads(pickle.dumps(error))

        assert (type(again), str(again), again.facts) == (kind, str(error), error.facts)


def test_a_forgotten_fact_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(KeyError):
        errors.UnknownJob(job="abc")


def test_braces_in_a_fact_stay_as_they_are() -> None:
    assert str(errors.Refused(why="{not a field}")) == "{not a field}"

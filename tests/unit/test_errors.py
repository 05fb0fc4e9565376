"""Every error is a sentence and an exit code."""

from __future__ import annotations

import pickle
import string

import pytest

from mam import errors
from mam.errors import MamError

CODES = {1, 2, 3, 4, 5, 6, 7, 8, 9}
"""CONTRACT section 8, without success."""

EXPECTED = {
    "UnknownJob": 1, "IllegalMove": 1, "Refused": 1, "UnknownStatus": 1, "BadInput": 2, "NothingToPick": 3,
    "ClaimLost": 4, "TimedOut": 5, "AmbiguousId": 6, "StoreUnavailable": 9, "StoreMissing": 9,
}  # fmt: skip

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MamError)]


def _facts(kind: type[MamError]) -> dict[str, object]:
    """Something for every name in the sentence: a number where it is formatted as one, else a word."""
    fields = ((name, form) for _, name, form, _ in string.Formatter().parse(kind.__doc__ or "") if name)
    return {name: 17 if form else f"<{name}>" for name, form in fields}


@pytest.mark.parametrize("kind", KINDS)
def test_the_docstring_is_a_sentence_that_takes_its_facts(kind: type[MamError]) -> None:
    assert kind.__doc__, "an error without a sentence"
    facts = _facts(kind)

    error = kind(**facts)

    assert all(str(value) in str(error) for value in facts.values())
    assert "{" not in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_the_exit_code_is_one_of_the_contract(kind: type[MamError]) -> None:
    assert kind.exit_code in CODES


@pytest.mark.parametrize(("name", "code"), EXPECTED.items())
def test_scripts_see_the_code_they_were_promised(name: str, code: int) -> None:
    assert vars(errors)[name].exit_code == code


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_travels_between_processes(kind: type[MamError]) -> None:
    error = kind(**_facts(kind))

    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), again.facts) == (kind, str(error), error.facts)


def test_a_forgotten_fact_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(KeyError):
        errors.UnknownJob(job="abc")


def test_braces_in_a_fact_stay_as_they_are() -> None:
    assert str(errors.Refused(why="{not a field}")) == "{not a field}"

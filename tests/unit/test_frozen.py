"""Frozen records."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from mam.util.frozen import Frozen


class Point(Frozen):
    x: int
    y: int = 7

    @property
    def sum(self) -> int:
        return self.x + self.y


class Other(Frozen):
    x: int
    y: int = 7


def test_fields_are_set_by_name_and_defaults_fill_in() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=2).sum) == (1, 7, 3)
    assert Point(x=1).as_dict() == {"x": 1, "y": 7}
    assert repr(Point(x=1)) == "Point(x=1, y=7)"


def test_a_missing_field_and_a_wrong_one_are_named() -> None:
    with pytest.raises(TypeError, match=r"Point needs .?x"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Point has no z"):
        Point(x=1, z=3)  # type: ignore[call-arg]


def test_nothing_can_be_changed_added_or_removed() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        point.z = 2
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    assert point == Point(x=1)


def test_a_changed_copy_leaves_the_first_alone() -> None:
    point = Point(x=1)

    assert point.replace(y=3) == Point(x=1, y=3)
    assert point == Point(x=1)
    with pytest.raises(TypeError, match="has no z"):
        point.replace(z=1)


def test_equal_is_same_kind_and_same_fields() -> None:
    assert Point(x=1) == Point(x=1, y=7)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    assert len({Point(x=1), Point(x=1), Point(x=2), Other(x=1)}) == 3


def test_copies_and_pickles_are_equal() -> None:
    point = Point(x=1, y=2)

    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == point


class Box(Frozen, freezes_json=True):
    content: dict[str, object]
    names: list[str] = ["a"]  # noqa: RUF012 - frozen


def test_json_in_a_record_is_a_frozen_copy_at_every_depth() -> None:
    live: dict[str, object] = {"agent": {"tokens": [1]}}
    made = [Box(content=live), Box(content={}).replace(content=live), Box.from_fields({"content": live, "names": []})]

    live["agent"]["tokens"].append(2)  # type: ignore[index]
    live["more"] = 1

    for box in made:
        assert box.content == {"agent": {"tokens": [1]}}
        assert json.dumps(box.content) == '{"agent": {"tokens": [1]}}'
        agent: Any = box.content["agent"]
        with pytest.raises(TypeError, match="cannot be changed"):
            box.content.update(x=1)
        with pytest.raises(TypeError, match="cannot be changed"):
            agent.pop("tokens")
        with pytest.raises(TypeError, match="cannot be changed"):
            agent["tokens"].append(2)
        with pytest.raises(TypeError, match="cannot be changed"):
            box.names.append("b")
        assert copy.deepcopy(box) == box == pickle.loads(pickle.dumps(box))
        assert box.replace(names=["c"]).content is box.content  # nothing is copied twice


def test_a_default_is_not_shared_as_something_that_can_change() -> None:
    with pytest.raises(TypeError, match="cannot be changed"):
        Box(content={}).names.append("b")

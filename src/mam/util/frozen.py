"""Frozen, keyword-only records, and frozen JSON for what they hold.

Importing the standard `dataclasses` takes longer than claiming a job (docs/performance.md), and every verb is a new
process. Type checkers see these classes as frozen dataclasses.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


def _refuse(self: object, *_given: object, **_named: object) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} cannot be changed; make another one: {{**this, name: value}} or [*this, value]"
    )


class FrozenDict(dict):  # type: ignore[type-arg]
    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (dict(self),))


class FrozenList(list):  # type: ignore[type-arg]
    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = _refuse
    insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (list(self),))


def freeze(value: Any) -> Any:
    """The value itself if nothing in it can change, otherwise a frozen copy. Subclasses of `dict` and `list` that are
    not mam's do not come up in JSON."""
    kind = type(value)
    if kind is dict:
        return FrozenDict({name: freeze(inner) for name, inner in value.items()})
    if kind is list:
        return FrozenList([freeze(inner) for inner in value])
    return value


def freeze_fields(fields: dict[str, Any], names: Sequence[str]) -> None:
    for name in names:
        value = fields[name]
        if type(value) is dict or type(value) is list:
            fields[name] = freeze(value)


def _holds_json(annotation: str) -> bool:
    return any(kind in annotation for kind in ("Json", "dict[", "list["))


class _FrozenType(type):
    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, freezes_json: bool = False
    ) -> _FrozenType:
        fields = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace.pop(field) for field in fields if field in namespace}
        cls = super().__new__(mcs, name, bases, namespace)
        cls.field_names = fields
        cls.field_defaults = defaults
        cls.all_fields = {**dict.fromkeys(fields), **defaults}
        cls.field_count = len(fields)
        cls.required_fields = frozenset(fields) - defaults.keys()
        kinds: dict[str, Any] = namespace.get("__annotations__", {})
        cls.frozen_json = tuple(field for field in fields if _holds_json(str(kinds[field]))) if freezes_json else ()
        freeze_fields(cls.all_fields, cls.frozen_json)
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: object) -> None:
        super().__init__(name, bases, namespace)

    field_names: tuple[str, ...]
    field_defaults: dict[str, Any]
    all_fields: dict[str, Any]
    """Every field in the order of the class, with its default or None."""
    field_count: int
    required_fields: frozenset[str]
    frozen_json: tuple[str, ...]
    """The fields whose JSON is frozen too, `class Name(Frozen, frozen_json=(…))`."""


allocate = object.__new__
"""Creates a record without its fields, for `set_fields`. Together they are a fast `Frozen.from_fields`."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Frozen(metaclass=_FrozenType):
    """Base of every record: fields are the annotations of the class, in order; no inheritance between records."""

    def __init__(self, **values: Any) -> None:
        # Copy one dictionary instead of setting each field: a claim creates a dozen records.
        kind = type(self)
        fields = {**kind.all_fields, **values}
        if not kind.required_fields <= values.keys():
            raise TypeError(f"{kind.__name__} needs {', '.join(sorted(kind.required_fields - values.keys()))}")
        if len(fields) != kind.field_count:
            raise _unknown_fields_error(kind, fields)
        if kind.frozen_json:
            freeze_fields(fields, kind.frozen_json)
        set_fields(self, fields)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        kind = type(self)
        fields = {**self.__dict__, **changes}
        if len(fields) != kind.field_count:
            raise _unknown_fields_error(kind, fields)
        return kind.from_fields(fields)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """A record with exactly these fields: all of them, in the order of the class, which is not checked. The record
        keeps the dictionary."""
        made = allocate(cls)
        if cls.frozen_json:
            freeze_fields(fields, cls.frozen_json)
        set_fields(made, fields)
        return made

    def as_dict(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=…)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Frozen) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.as_dict()))


set_fields = Frozen.__dict__["__dict__"].__set__
"""Sets the fields of a record, bypassing `__setattr__`."""


def _unknown_fields_error(kind: type[Frozen], fields: dict[str, Any]) -> TypeError:
    return TypeError(f"{kind.__name__} has no {', '.join(sorted(fields.keys() - kind.all_fields.keys()))}")


def _rebuild(kind: type[Frozen], values: dict[str, Any]) -> Frozen:
    return kind(**values)

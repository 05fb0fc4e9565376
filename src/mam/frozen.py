"""Frozen, slotted, keyword-only records.

The standard `dataclasses` module would do, but importing it costs more than the whole act of claiming a job
(docs/performance.md), and every hot verb is a fresh process. Type checkers see these as frozen dataclasses.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


class _FrozenType(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _FrozenType:
        fields = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace.pop(field) for field in fields if field in namespace}
        cls = super().__new__(mcs, name, bases, {**namespace, "__slots__": fields})
        cls.field_names = fields
        cls.field_defaults = defaults
        return cls

    field_names: tuple[str, ...]
    field_defaults: dict[str, Any]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Frozen(metaclass=_FrozenType):
    """Base of every record: fields are the annotations of the class, in order; no inheritance between records."""

    def __init__(self, **values: Any) -> None:
        kind = type(self)
        if kind.field_defaults:
            values = {**kind.field_defaults, **values}
        keep = object.__setattr__
        try:
            for field in kind.field_names:
                keep(self, field, values[field])
        except KeyError as missing:
            raise TypeError(f"{kind.__name__} needs {missing}") from None
        if len(values) != len(kind.field_names):
            raise TypeError(f"{kind.__name__} has no {', '.join(values.keys() - set(kind.field_names))}")

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        return type(self)(**{**self.as_dict(), **changes})

    def as_dict(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in type(self).field_names}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=…)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Frozen) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash((type(self), *self.as_dict().values()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items())
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.as_dict()))


def _rebuild(kind: type[Frozen], values: dict[str, Any]) -> Frozen:
    return kind(**values)

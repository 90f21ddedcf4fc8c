"""Results with named fields, such as what `torch.max(x, dim=0)` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any


class NamedResult(tuple[Any, ...]):
    """A tuple whose items also have names; it prints one field a line."""

    __slots__ = ()
    fields: tuple[str, ...] = ()
    n_fields = n_sequence_fields = 0
    n_unnamed_fields = 0

    def __new__(cls, items: Iterable[Any]) -> NamedResult:
        """From a sequence with one item per field."""
        made = tuple.__new__(cls, items)
        if len(made) != cls.n_fields:
            raise TypeError(f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence "
                            f"({len(made)}-sequence given)")
        return made

    @classmethod
    def written(cls, out: Iterable[Any]) -> NamedResult:
        """Results that were written into the tensors given as `out=`: PyTorch has a class of its own for them."""
        return named(f"{cls.__name__}_out", cls.fields)(tuple(out))

    def __repr__(self) -> str:
        inside = ",\n".join(f"{name}={value!r}" for name, value in zip(self.fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self).__name__, self.fields, tuple(self)))


RESULT_TYPES: dict[str, type[NamedResult]] = {}


def named(op_name: str, fields: tuple[str, ...]) -> type[NamedResult]:
    """The result class of an op: called with a tuple, it gives the same tuple with named fields."""
    found = RESULT_TYPES.get(op_name)
    if found is None:
        body: dict[str, Any] = {"__slots__": (), "__module__": "torch.return_types", "fields": fields,
                                "n_fields": len(fields), "n_sequence_fields": len(fields),
                                "__match_args__": fields, "__doc__": f"What `{op_name}` returns."}
        for position, field in enumerate(fields):
            body[field] = property(itemgetter(position), doc=f"Item {position}.")
        found = RESULT_TYPES[op_name] = type(op_name, (NamedResult,), body)
    return found


def _rebuild(op_name: str, fields: tuple[str, ...], items: tuple[Any, ...]) -> NamedResult:
    maker: Callable[[Any], NamedResult] = named(op_name, fields)
    return maker(items)

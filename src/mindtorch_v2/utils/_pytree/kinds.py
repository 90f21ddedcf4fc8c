"""Tuples with names: those of `namedtuple`, and the struct sequences of C."""

from __future__ import annotations

from typing import Any

from ..._ops.return_types import NamedResult


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class was made by `namedtuple`."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and (
        callable(getattr(cls, "_make", None)))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is of such a class."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Either."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is a struct sequence of C, such as `time.struct_time`."""
    return isinstance(cls, type) and (cls.__bases__ == (tuple,) or cls.__base__ is NamedResult) and all(
        isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Either."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))

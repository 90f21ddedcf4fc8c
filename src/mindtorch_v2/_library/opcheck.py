"""`opcheck`: tries an op of a program for the mistakes that are made most often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..utils._pytree import tree_map
from . import table
from .definition import Definition

SKIPPED = "SKIPPED: this runtime has no compiler to try the op with"


class OpCheckError(Exception):
    """A test of `opcheck` has failed."""


def _copies(values: Any, where: str | None = None) -> Any:
    def copy(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        made = aten.clone(value.detach()) if where is None else aten.to(value.detach(), where)
        return made.requires_grad_(value.requires_grad)

    return tree_map(copy, values)


def _flat(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    tree_map(lambda value: found.append(value) if isinstance(value, Tensor) else None, values)
    return found


def _test_schema(definition: Definition, args: Any, kwargs: Any) -> None:
    """Only arguments that the signature marks are written to."""
    args, kwargs = _copies((args, kwargs))
    bound = list(args) + [None] * (len(definition.schema.arguments) - len(args))
    for place, argument in enumerate(definition.schema.arguments):
        bound[place] = kwargs.get(argument.name, bound[place])
    before = [[np.array(tensor._a) for tensor in _flat(value)] for value in bound]
    definition(*args, **kwargs)
    for place, (argument, old) in enumerate(zip(definition.schema.arguments, before, strict=True)):
        same = all(np.array_equal(a, tensor._a, equal_nan=a.dtype.kind in "fc")
                   for a, tensor in zip(old, _flat(bound[place]), strict=True))
        if not same and place not in definition.schema.mutated:
            raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")


def _test_autograd(definition: Definition, args: Any, kwargs: Any) -> None:
    """Gradients of an op with arguments that require them are registered somewhere."""
    if not any(tensor.requires_grad for tensor in _flat((args, kwargs))):
        return
    implicit = "CompositeImplicitAutograd" in definition.kernels
    if not (implicit or definition.formula or any(key.startswith("Autograd") for key in definition.kernels)):
        raise AssertionError(f"{definition}: an autograd kernel was not registered to the Autograd key(s)")


def _test_fake(definition: Definition, args: Any, kwargs: Any) -> None:
    """The op without data makes what the op with data makes."""
    real = _flat(definition(*_copies(args), **_copies(kwargs)))
    fake = _flat(definition(*_copies(args, "meta"), **_copies(kwargs, "meta")))
    if len(real) != len(fake):
        raise AssertionError(f"number of outputs: {len(fake)} without data, {len(real)} with")
    for one, other in zip(fake, real, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise AssertionError("found mismatched tensor metadata: "
                                 f"Shapes {one.shape} and {other.shape}, dtypes {one.dtype} and {other.dtype} of the "
                                 "op without data and with it are not equal!")


TESTS: dict[str, Callable[[Definition, Any, Any], None] | None] = {
    "test_schema": _test_schema, "test_autograd_registration": _test_autograd, "test_faketensor": _test_fake,
    "test_aot_dispatch_dynamic": None, "test_aot_dispatch_static": None}
DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def opcheck(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
            test_utils: str | Sequence[str] = DEFAULT, raise_exception: bool = True, atol: float | None = None,
            rtol: float | None = None) -> dict[str, str]:
    """Test an op with sample arguments; the tests of PyTorch's compiler are reported as skipped."""
    definition = getattr(op, "_definition", None)
    if definition is None:
        if not hasattr(op, "_overloadname"):
            raise ValueError("opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
                             f"torch.ops.aten.sin.default, got {type(op)}")
        definition = table.find(op.name())
        if definition is None:
            raise NotImplementedError(f"opcheck: {op.name()} is not an op of the program's own")
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    outcome: dict[str, str] = {}
    for name in names:
        if name not in TESTS:
            raise ValueError(f"opcheck(op, ..., test_utils={tuple(names)}), expected test_utils to be subset of "
                             f"{tuple(TESTS)} but it was not")
        test = TESTS[name]
        if test is None:
            outcome[name] = SKIPPED
            continue
        try:
            test(definition, tuple(args), kwargs or {})
            outcome[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                                   ) from error
            outcome[name] = str(error)
    return outcome

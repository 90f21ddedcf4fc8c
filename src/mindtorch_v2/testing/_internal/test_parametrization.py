"""Tests with parameters for `unittest`: one method becomes several, named after the values."""

from __future__ import annotations

import functools
import inspect
import itertools
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..._device import device
from ..._dtype import dtype

_PARAMETERS = "_parametrize_with"  # the attribute of a test method that holds its choices
Variant = tuple[str, dict[str, Any], tuple[Callable[..., Any], ...]]  # end of the name, arguments, decorators


class subtest:
    """A choice with a name of its own, or with decorators that only this choice gets."""

    def __init__(self, arg_values: Any, name: str | None = None,
                 decorators: Sequence[Callable[..., Any]] | None = None) -> None:
        self.arg_values = arg_values
        self.name = name
        self.decorators = tuple(decorators or ())


class parametrize:
    """Run a test once for each of some values.

    >>> import unittest
    >>> class Example(unittest.TestCase):
    ...     @parametrize("size", [1, 2])
    ...     def test_size(self, size: int) -> None:
    ...         self.assertGreater(size, 0)
    >>> sorted(name for name in vars(instantiate_parametrized_tests(Example)) if name.startswith("test"))
    ['test_size_size_1', 'test_size_size_2']
    """

    def __init__(self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None) -> None:
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values = arg_values
        self.name_fn = name_fn

    def variants(self) -> Iterator[Variant]:
        """The choices."""
        for number, value in enumerate(self.values):
            chosen = value if isinstance(value, subtest) else subtest(value)
            given = (chosen.arg_values,) if len(self.names) == 1 else tuple(chosen.arg_values)
            if len(given) != len(self.names):
                raise RuntimeError(f"Expected # values == # arg names, but got: {len(given)} values and "
                                   f"{len(self.names)} names for parameters {self.names}")
            if chosen.name is not None:
                name = chosen.name
            elif self.name_fn is not None:
                name = self.name_fn(*given)
            else:
                name = "_".join(_text(key, item, number) for key, item in zip(self.names, given))
            yield name, dict(zip(self.names, given)), chosen.decorators

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, _PARAMETERS, [self, *getattr(function, _PARAMETERS, [])])
        return function


def _text(key: str, value: Any, number: int) -> str:
    """A parameter as part of a name; a value that has no short text gives its number."""
    if isinstance(value, dtype):
        return value.name
    if isinstance(value, device):
        return str(value)
    if hasattr(value, "formatted_name"):
        return str(value.formatted_name)
    if isinstance(value, (int, float, str)):
        return f"{key}_{str(value).replace('.', '_')}"
    return f"{key}{number}"


class reparametrize:
    """Other variants in place of a parametrization's own: a function makes them from each of it."""

    def __init__(self, parametrizer: Any, adapter_fn: Callable[..., Iterable[tuple[str, dict[str, Any]]]]) -> None:
        self.parametrizer, self.adapter_fn = parametrizer, adapter_fn

    def variants(self) -> Iterator[Variant]:
        """The choices."""
        for name, values, decorators in self.parametrizer.variants():
            for other, changed in self.adapter_fn(name, dict(values)):
                yield other, changed, decorators

    __call__ = parametrize.__call__


def expanded(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The tests that a test with parameters stands for, with the ends of their names."""
    choices = [list(one.variants()) for one in getattr(function, _PARAMETERS, [])]
    for combination in itertools.product(*choices):
        arguments: dict[str, Any] = {}
        decorators: tuple[Callable[..., Any], ...] = ()
        for _, values, more in combination:
            arguments.update(values)
            decorators += more
        decorators += tuple(one for one, wanted in getattr(function, "_decorate_if", ()) if wanted(arguments))
        yield "_".join(name for name, _, _ in combination), bound(function, arguments, decorators)


def bound(function: Callable[..., Any], arguments: dict[str, Any],
          decorators: Iterable[Callable[..., Any]] = ()) -> Callable[..., Any]:
    """A test with some of its arguments given."""

    @functools.wraps(function)
    def test(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **arguments, **kwargs)

    # What is given already is no argument any more: pytest would look for a fixture of its name.
    kept = [value for key, value in inspect.signature(function).parameters.items() if key not in arguments]
    test.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
    del test.__wrapped__
    result: Callable[..., Any] = test
    for decorate in decorators:
        result = decorate(result)
    return result


def instantiate_parametrized_tests(generic_cls: type[unittest.TestCase]) -> type[unittest.TestCase]:
    """Replace the tests with parameters of a class by those that they stand for."""
    for name, function in list(vars(generic_cls).items()):
        if not callable(function) or not hasattr(function, _PARAMETERS):
            continue
        delattr(generic_cls, name)
        for ending, test in expanded(function):
            test.__name__ = f"{name}_{ending}"
            if hasattr(generic_cls, test.__name__):
                raise RuntimeError(f"Redefinition of test {test.__name__}")
            setattr(generic_cls, test.__name__, test)
    return generic_cls

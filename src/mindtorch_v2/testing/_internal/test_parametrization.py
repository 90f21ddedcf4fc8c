"""Tests with parameters for `unittest`: one method becomes several, named after the values."""

from __future__ import annotations

import functools
import inspect
import itertools
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

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
                name = "_".join(f"{key}_{_text(item, number)}" for key, item in zip(self.names, given))
            yield name, dict(zip(self.names, given)), chosen.decorators

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, _PARAMETERS, [self, *getattr(function, _PARAMETERS, [])])
        return function


def _text(value: Any, number: int) -> str:
    """A value as part of a name; those that have no short text get their number."""
    if isinstance(value, (bool, int, float, str, type(None))):
        return str(value).replace(".", "_").replace(" ", "_")
    return getattr(value, "__name__", None) or (str(value).rpartition(".")[2] if str(value).isidentifier()
                                                or str(value).startswith("torch.") else str(number))


def expanded(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The tests that a test with parameters stands for, with the ends of their names."""
    choices = [list(one.variants()) for one in getattr(function, _PARAMETERS, [])]
    for combination in itertools.product(*choices):
        arguments: dict[str, Any] = {}
        decorators: tuple[Callable[..., Any], ...] = ()
        for _, values, more in combination:
            arguments.update(values)
            decorators += more
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
    del test.__wrapped__  # type: ignore[attr-defined]
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

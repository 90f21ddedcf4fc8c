"""Tests that run over a list of descriptions (of ops, modules, optimizers), each with element types of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Test = Callable[..., Any]
OVER = "_device_test_ops"  # the attribute of a test that holds what it runs over


class over:
    """Run a test once for each description of a list and each of some element types.

    A subclass says which variants there are, and which arguments of the test a variant gives.
    """

    test = ""

    def __call__(self, fn: Test) -> Test:
        """Mark a test."""
        self.test = fn.__name__
        setattr(fn, OVER, self)
        return fn

    def variants(self) -> Iterator[tuple[str, Any, Any]]:
        """Part of the test's name, what it is given, its element type."""
        raise NotImplementedError

    def arguments(self, chosen: Any) -> dict[str, Any]:
        """The arguments that a variant gives besides `dtype`."""
        raise NotImplementedError


class Described:
    """A description with tests that do not hold for it, and marks for tests."""

    def __init__(self, skips: Iterable[Any], decorators: Iterable[Any] | None) -> None:
        self.decorators = (*(decorators or ()), *skips)

    def leaves_out(self, test: str) -> bool:
        """Whether a test, by the name that it is defined with, is not for this one."""
        return test in self.decorators

    def get_decorators(self, test_class: str, test_name: str, device: Any, dtype: Any,
                       param_kwargs: dict[str, Any]) -> list[Any]:
        """The marks of one test."""
        found: list[Any] = []
        for one in self.decorators:
            if isinstance(one, str):
                continue
            if not hasattr(one, "is_active"):
                found.append(one)
            elif one.is_active(test_class, test_name, device, dtype, param_kwargs):
                found.extend(one.decorators)
        return found

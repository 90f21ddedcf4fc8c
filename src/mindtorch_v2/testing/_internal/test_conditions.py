"""Marks of tests for conditions that cannot hold here, and helpers around a test: parts of `common_utils`."""

from __future__ import annotations

import functools
import gc
import os
import sysconfig
import time
import unittest
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._dtype import dtype, get_default_dtype, set_default_dtype
from ..._settings import are_deterministic_algorithms_enabled, set_default_tensor_type, use_deterministic_algorithms

Decorator = Callable[[Any], Any]


def _unchanged(test: Any) -> Any:
    return test


def runs_anyway(first: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A mark of tests that some device or compiler cannot run: there is none of it, so the test runs.

    Used as `@mark`, `@mark(reason)` or `@mark(condition, reason)`.
    """
    return first if callable(first) and not args and not kwargs else _unchanged


# Compilers and devices that are not here.
skipIfTorchInductor = xfailIfTorchDynamo = markDynamoStrictTest = unMarkDynamoStrictTest = runs_anyway
skipIfMPS = skipIfHpu = skipIfRocmArch = skipIfRocmVersionLessThan = skipIfSlowGradcheckEnv = runs_anyway
skipCUDANonDefaultStreamIf = runs_anyway
skipIfNoLapack = _unchanged  # the linear algebra is NumPy's
requires_cuda = unittest.skip("CUDA is not available")


def skipIfFreeThreaded(reason: str = "not supported without the global interpreter lock") -> Decorator:
    """Skip in a Python without its global lock."""
    return unittest.skipIf(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason)


def xfailIf(condition: bool) -> Decorator:
    """Expect a failure if something holds."""
    return unittest.expectedFailure if condition else _unchanged


def decorateIf(decorator: Decorator, predicate_fn: Callable[[dict[str, Any]], bool]) -> Decorator:
    """Decorate those variants of a test whose parameters are as wanted."""

    def mark(test: Any) -> Any:
        test._decorate_if = [*getattr(test, "_decorate_if", ()), (decorator, predicate_fn)]
        return test

    return mark


def suppress_warnings(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test without showing warnings."""

    @functools.wraps(fn)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **kwargs)

    return quiet


def retry(ExceptionToCheck: type[BaseException], tries: int = 3, delay: float = 3,
          skip_after_retries: bool = False) -> Decorator:
    """Run a test again if it fails in some way; after the last time, fail or skip."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            for left in reversed(range(tries)):
                try:
                    return fn(*args, **kwargs)
                except ExceptionToCheck as error:
                    if left:
                        time.sleep(delay)
                    elif skip_after_retries:
                        raise unittest.SkipTest(f"skipping after {tries} consecutive {error}") from error
                    else:
                        raise
            return None

        return run

    return decorate


@contextmanager
def set_default_dtype_to(kind: dtype) -> Iterator[None]:
    """Another default element type inside the block."""
    before = get_default_dtype()
    set_default_dtype(kind)
    try:
        yield
    finally:
        set_default_dtype(before)


@contextmanager
def set_default_tensor_type_to(kind: Any) -> Iterator[None]:
    """Another default kind of tensors inside the block."""
    before = get_default_dtype()
    set_default_tensor_type(kind)
    try:
        yield
    finally:
        set_default_dtype(before)


@contextmanager
def disable_gc() -> Iterator[None]:
    """No garbage collection inside the block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def set_cwd(path: str) -> Iterator[None]:
    """Another current directory inside the block."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


class DeterministicGuard:
    """Ask for deterministic algorithms, or not, inside the block."""

    def __init__(self, deterministic: bool, *, warn_only: bool = False, fill_uninitialized_memory: bool = True) -> None:
        self.deterministic, self.warn_only = deterministic, warn_only

    def __enter__(self) -> None:
        self.before = are_deterministic_algorithms_enabled()
        use_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)

    def __exit__(self, *exc: object) -> None:
        use_deterministic_algorithms(self.before)


def dtype_name(kind: dtype) -> str:
    """`float32`."""
    return kind.name


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    """What `unittest` calls to find the tests of a module: those that it found itself."""
    return tests

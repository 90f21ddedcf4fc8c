"""`TestCase`: a unittest class that knows tensors. A part of `common_utils`."""

# ruff: noqa: PT009, PT027 - this is a unittest.TestCase: its methods are what it is made of

from __future__ import annotations

import collections.abc
import os
import random
import re
import subprocess
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._construct import as_tensor, tensor
from ..._dispatch.namespace import aten
from ..._dtype import ALL_DTYPES, dtype
from ..._random import manual_seed
from ..._settings import is_warn_always_enabled, set_warn_always
from ..._storage import Storage as UntypedStorage
from ..._tensor import Tensor
from ..._typed_storage import TypedStorage
from ...nn import ModuleList, ParameterList, Sequential
from .._comparison import TOLERANCES, assert_close
from .._creation import make_tensor

SEED = 1234
NUMBERS = (bool, int, float, complex, np.number, np.bool_)
ARRAYS = (Tensor, np.ndarray)
NUMPY_KINDS = {np.dtype(kind.np) for kind in ALL_DTYPES}


def set_rng_seed(seed: int | None = None) -> None:
    """Seed all generators of random numbers that tests use."""
    seed = SEED if seed is None else seed
    manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


class _Comparison:
    """What one `assertEqual` looks at."""

    def __init__(self, case: TestCase, msg: Any, rtol: float | None, atol: float | None, exact_dtype: bool,
                 exact_coalesced: bool, **checks: bool) -> None:
        if (rtol is None) != (atol is None):
            rtol, atol = rtol or 0.0, atol or 0.0
        self.case, self.msg, self.exact_dtype, self.exact_coalesced = case, msg, exact_dtype, exact_coalesced
        self.checks = checks
        self.rtol, self.atol = rtol, atol

    def text(self, found: str) -> str:
        """What the assertion says."""
        if self.msg is None:
            return found
        return self.msg(found) if callable(self.msg) else f"{found}\n{self.msg}"

    def fail(self, found: str, place: str) -> None:
        """Raise, with the place inside containers."""
        raise AssertionError(self.text(found + self.where(place)))

    def compare(self, x: Any, y: Any, place: str = "") -> None:
        """Descend into containers; numbers and tensors are equal up to a tolerance, anything else exactly."""
        if isinstance(x, ARRAYS) and _sequence(y):
            y = tensor(list(y), dtype=x.dtype) if isinstance(x, Tensor) else np.asarray(y)
        elif isinstance(y, ARRAYS) and _sequence(x):
            x = tensor(list(x), dtype=y.dtype) if isinstance(y, Tensor) else np.asarray(x)
        if isinstance(x, ARRAYS) or isinstance(y, ARRAYS):
            self.tensors(x, y, place)
        elif isinstance(x, NUMBERS) and isinstance(y, NUMBERS):
            self.close(_number(x), _number(y), False, place)
        elif isinstance(x, (UntypedStorage, TypedStorage)) and isinstance(y, (UntypedStorage, TypedStorage)):
            self.compare(list(x), list(y), place)
        elif _sequence(x) and _sequence(y):
            if len(x) != len(y):
                self.fail(f"The length of the sequences mismatch: {len(x)} != {len(y)}", place)
            for number, (a, b) in enumerate(zip(x, y, strict=True)):
                self.compare(a, b, f"{place}[{number}]")
        elif isinstance(x, Mapping) and isinstance(y, Mapping):
            if set(x) != set(y):
                self.fail(f"The keys of the mappings do not match:\nMissing keys in the actual mapping: "
                          f"{sorted(set(y) - set(x), key=str)}\nAdditional keys in the actual mapping: "
                          f"{sorted(set(x) - set(y), key=str)}", place)
            for key in x:
                self.compare(x[key], y[key], f"{place}[{key!r}]")
        else:
            unittest.TestCase.assertEqual(self.case, x, y, None if self.msg is None else self.text(""))

    def tensors(self, x: Any, y: Any, place: str) -> None:
        """Tensors and arrays, one of which may be a number for a tensor of one element."""
        for value, other in ((x, y), (y, x)):
            if isinstance(value, np.ndarray) and value.dtype not in NUMPY_KINDS:
                self.compare(value.tolist(), other.tolist(), place)
                return
            if isinstance(value, NUMBERS):
                if other.size != 1 if isinstance(other, np.ndarray) else other.numel() != 1:
                    raise ValueError("Only single element tensor-likes can be compared against a number, not "
                                     f"{value!r} and {other!r}")
                self.close(_number(x if value is x else x.item()), _number(y if value is y else y.item()), False, place,
                           str(other.dtype).rpartition(".")[2])
                return
            if not isinstance(value, ARRAYS):
                unittest.TestCase.assertEqual(self.case, x, y, self.text(""))
        # A number's dtype does not count; an array's is compared as that of the tensor made from it.
        pair: list[Any] = [value if isinstance(value, Tensor) else as_tensor(value) for value in (x, y)]
        if self.exact_coalesced and pair[0].is_sparse and pair[0].is_coalesced() != pair[1].is_coalesced():
            self.fail("one tensor is coalesced, the other is not", place)
        self.close(pair[0].detach(), pair[1].detach(), self.exact_dtype, place,
                   str(pair[0].dtype).rpartition(".")[2])

    def close(self, x: Any, y: Any, exact_dtype: bool, place: str, kind: str = "") -> None:
        """`assert_close` with the tolerances of the test."""
        rtol, atol = self.rtol, self.atol
        if rtol is None and (kind or self.case.precision or self.case.rel_tol):
            own = TOLERANCES.get(kind or ("float64" if isinstance(x, (float, complex)) else ""), (0.0, 0.0))
            rtol, atol = max(own[0], self.case.rel_tol), max(own[1], self.case.precision)
        assert_close(x, y, rtol=rtol, atol=atol, check_dtype=exact_dtype, **self.checks,
                     msg=lambda found: self.text(found + self.where(place)))

    @staticmethod
    def where(place: str) -> str:
        """A place inside containers, in words."""
        return f"\n\nThe failure occurred for item {place}" if place else ""


def _sequence(value: Any) -> bool:
    return isinstance(value, (collections.abc.Sequence, collections.deque, Sequential, ModuleList, ParameterList)
                      ) and not isinstance(value, (str, bytes))


def _number(value: Any) -> Any:
    """A number of Python, and no bool: 1 equals True."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, bool) else value


class TestCase(unittest.TestCase):
    """`unittest.TestCase` that compares tensors, seeds each test, and shows long differences whole."""

    maxDiff = None
    longMessage = True
    __test__ = True
    precision = 0.0
    rel_tol = 0.0

    def setUp(self) -> None:
        """Seed, so that a test does the same alone and among others."""
        set_rng_seed(SEED)

    def assertEqual(self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None,
                    rtol: float | None = None, equal_nan: bool = True, exact_dtype: bool = True,
                    exact_device: bool = False, exact_layout: bool = False, exact_stride: bool = False,
                    exact_is_coalesced: bool = False) -> None:
        """Equal; for tensors and numbers up to a tolerance, also inside of containers."""
        _Comparison(self, msg, rtol, atol, exact_dtype, exact_is_coalesced, equal_nan=equal_nan,
                    check_device=exact_device, check_layout=exact_layout, check_stride=exact_stride).compare(x, y)

    def assertNotEqual(self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None,  # type: ignore[override]
                       rtol: float | None = None, **options: Any) -> None:
        """The opposite of `assertEqual`."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **options)

    def assertEqualIgnoreType(self, *args: Any, **kwargs: Any) -> None:
        """`assertEqual` that does not look at element types."""
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualTypeString(self, x: Any, y: Any) -> None:
        """Same device, dtype and kind of tensor."""
        unittest.TestCase.assertEqual(self, (x.device, x.dtype, x.is_sparse), (y.device, y.dtype, y.is_sparse))

    def assertEqualBroadcasting(self, x: Any, y: Any, *args: Any, **kwargs: Any) -> None:
        """Equal to a tensor or number that may have fewer dimensions."""
        other = y if isinstance(y, Tensor) else tensor(y, dtype=x.dtype, device=x.device)
        self.assertEqual(x, aten.expand(other, x.shape), *args, **kwargs)

    def assertObjectIn(self, obj: Any, iterable: Any) -> None:
        """The object itself is among these."""
        if not any(one is obj for one in iterable):
            raise AssertionError("object not found in iterable")

    def assertExpectedInline(self, actual: Any, expect: str, skip: int = 0) -> None:
        """The text is the expected one. Rewriting it in the file, as PyTorch's helper can, is not supported."""
        if os.getenv("EXPECTTEST_ACCEPT"):
            raise NotImplementedError("assertExpectedInline: EXPECTTEST_ACCEPT needs the package expecttest")
        super().assertEqual(str(actual), expect)

    def assertExpectedRaisesInline(self, exc_type: type[BaseException], callable: Callable[..., Any], expect: str,
                                   *args: Any, **kwargs: Any) -> None:
        """A call raises an error with just this text."""
        with self.assertRaises(exc_type) as found:
            callable(*args, **kwargs)
        self.assertExpectedInline(str(found.exception), expect)

    def assertNotWarn(self, callable: Callable[..., Any], msg: str = "") -> None:
        """Calling it raises no warning."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            callable()
        self.assertTrue(not found, msg or f"warnings were raised: {[str(one.message) for one in found]}")

    @contextmanager
    def assertRaisesRegexIgnoreFrame(self, error: type[BaseException], pattern: str) -> Iterator[None]:
        """`assertRaisesRegex` under the name that tests of compiled code use."""
        with self.assertRaisesRegex(error, pattern):
            yield

    @contextmanager
    def assertWarnsOnceRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        """A warning that PyTorch shows once, and always if asked to."""
        before = is_warn_always_enabled()
        set_warn_always(True)
        try:
            with self.assertWarnsRegex(category, regex):
                yield
        finally:
            set_warn_always(before)

    @contextmanager
    def maybeWarnsRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        """If there are warnings, they are of a kind and match."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        for one in found:
            self.assertTrue(issubclass(one.category, category) and re.search(regex, str(one.message)), str(one.message))

    def compare_with_numpy(self, torch_fn: Callable[..., Any], np_fn: Callable[..., Any], tensor_like: Any,
                           device: Any = None, dtype: dtype | None = None, **kwargs: Any) -> None:
        """A function gives on a tensor what another gives on the array of the same elements."""
        if isinstance(tensor_like, Tensor):
            if device is not None or dtype is not None:
                raise AssertionError("a tensor has its device and dtype already")
            one: Any = tensor_like
        else:
            one = tensor(tensor_like, device=device, dtype=dtype)
        expected = np_fn(one.detach().cpu().numpy())
        self.assertEqual(torch_fn(one), as_tensor(expected) if isinstance(expected, np.ndarray) else expected,
                         **{"exact_dtype": False, **kwargs})

    def compare_with_reference(self, torch_fn: Any, ref_fn: Any, sample_input: Any, **kwargs: Any) -> None:
        """A function gives on a sample what its reference gives on the arrays."""
        found = torch_fn(sample_input.input, *sample_input.args, **sample_input.kwargs)
        numpy_form = sample_input.numpy()
        expected = ref_fn(numpy_form.input, *numpy_form.args, **numpy_form.kwargs)
        self.assertEqual(found, as_tensor(expected) if isinstance(expected, np.ndarray) else expected,
                         **{"exact_dtype": False, **kwargs})

    def genSparseTensor(self, size: Sequence[int], sparse_dim: int, nnz: int, is_uncoalesced: bool, device: Any,
                        dtype: dtype) -> tuple[Any, Any, Any]:
        """A sparse tensor with random places, its indices and its values."""
        if not all(one > 0 for one in size) and nnz:
            raise AssertionError("a tensor without elements cannot have values")
        values = make_tensor((nnz, *size[sparse_dim:]), device=device, dtype=dtype, low=-1, high=1)
        indices = aten.rand((sparse_dim, nnz), device=device)
        indices = (indices * tensor(size[:sparse_dim]).to(indices.dtype).unsqueeze(1)).to(aten.empty(0).long().dtype)
        if is_uncoalesced:
            values = aten.cat([values, make_tensor(values.shape, device=device, dtype=dtype, low=-1, high=1)], 0)
            indices = aten.cat([indices, indices], 1)
        made = aten.sparse_coo_tensor(indices, values, tuple(size))
        if not is_uncoalesced:
            made = made.coalesce()
        return made, made._indices().clone(), made._values().clone()

    @staticmethod
    def run_process_no_exception(code: str, env: dict[str, str] | None = None) -> tuple[bytes, bytes]:
        """Run a program in a process of its own; gives what it printed."""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=False)
        if done.returncode:
            raise AssertionError(f"the program failed: {done.stderr.decode()}")
        return done.stdout, done.stderr

"""`torch.testing._internal.common_utils`: what PyTorch's tests of the profiler use from there.

The flags say what this runtime has: a CPU, and neither compilers nor other vendors' devices.
"""

# ruff: noqa: PT009, PT027 - this is a unittest.TestCase: its methods are what it is made of

from __future__ import annotations

import functools
import os
import platform
import random
import shutil
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._random import manual_seed
from ..._tensor import Tensor
from .._compare import assert_close
from .._creation import make_tensor
from .test_conditions import (
    DeterministicGuard,
    decorateIf,
    disable_gc,
    dtype_name,
    load_tests,
    markDynamoStrictTest,
    requires_cuda,
    retry,
    set_cwd,
    skipCUDANonDefaultStreamIf,
    skipIfFreeThreaded,
    skipIfHpu,
    skipIfMPS,
    skipIfNoLapack,
    skipIfRocmArch,
    skipIfRocmVersionLessThan,
    skipIfSlowGradcheckEnv,
    skipIfTorchInductor,
    suppress_warnings,
    unMarkDynamoStrictTest,
    xfailIf,
    xfailIfTorchDynamo,
)
from .test_conditions import set_default_dtype_to as set_default_dtype
from .test_parametrization import instantiate_parametrized_tests, parametrize, subtest

__all__ = [
    "DeterministicGuard",
    "TemporaryDirectoryName",
    "TemporaryFileName",
    "TestCase",
    "decorateIf",
    "disable_gc",
    "dtype_name",
    "freeze_rng_state",
    "instantiate_parametrized_tests",
    "load_tests",
    "make_tensor",
    "markDynamoStrictTest",
    "parametrize",
    "requires_cuda",
    "retry",
    "run_tests",
    "serialTest",
    "set_cwd",
    "set_default_dtype",
    "skipCUDANonDefaultStreamIf",
    "skipIfFreeThreaded",
    "skipIfHpu",
    "skipIfMPS",
    "skipIfNoLapack",
    "skipIfRocmArch",
    "skipIfRocmVersionLessThan",
    "skipIfSlowGradcheckEnv",
    "skipIfTorchDynamo",
    "skipIfTorchInductor",
    "slowTest",
    "subtest",
    "suppress_warnings",
    "unMarkDynamoStrictTest",
    "xfailIf",
    "xfailIfTorchDynamo",
]

IS_LINUX = sys.platform == "linux"
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_X86 = platform.machine() in ("x86_64", "i386", "AMD64")
IS_ARM64 = platform.machine() in ("arm64", "aarch64")
IS_PPC = platform.processor() == "ppc64le"
IS_S390X = platform.machine() == "s390x"
IS_JETSON = IS_FBCODE = IS_SANDCASTLE = IS_REMOTE_GPU = IS_CI = False

TEST_NUMPY = True  # what the kernels are made of
TEST_CUDA = TEST_MPS = TEST_XPU = TEST_HPU = TEST_CUDA_GRAPH = TEST_PRIVATEUSE1 = TEST_ACCELERATOR = False
TEST_MKL = TEST_MKLDNN = TEST_SCIPY = TEST_CUDNN = False
TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_UBSAN = TEST_WITH_ROCM = TEST_WITH_CROSSREF = False
TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = TEST_WITH_AOT_EAGER = TEST_WITH_SLOW_GRADCHECK = False
TEST_WITH_SLOW = os.getenv("PYTORCH_TEST_WITH_SLOW", "0") == "1"
TEST_SKIP_FAST = os.getenv("PYTORCH_TEST_SKIP_FAST", "0") == "1"
TEST_WITH_DEV_DBG_ASAN = TEST_LIBROSA = TEST_NUMBA = TEST_OPT_EINSUM = IS_CPU_EXT_SVE_SUPPORTED = False
GRADCHECK_NONDET_TOL = 0.0
NO_MULTIPROCESSING_SPAWN = False
MI300_ARCH: tuple[str, ...] = ()

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
SEED = 1234


def set_rng_seed(seed: int | None = None) -> None:
    """Seed all generators of random numbers that tests use."""
    seed = SEED if seed is None else seed
    manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Leave the generators of NumPy and Python as they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)


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

    def assertEqual(self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None,  # type: ignore[override]
                    rtol: float | None = None, equal_nan: bool = True, exact_dtype: bool = True,
                    exact_device: bool = False, exact_layout: bool = False, exact_stride: bool = False,
                    exact_is_coalesced: bool = False) -> None:
        """Equal; for tensors and numbers up to a tolerance, also inside of containers."""
        if isinstance(y, str) or not _numeric(x) or not _numeric(y):
            super().assertEqual(x, y, msg)
            return
        if atol is not None and rtol is None:
            rtol = 0.0
        elif rtol is not None and atol is None:
            atol = 0.0
        both = exact_dtype and _has_tensor(x) and _has_tensor(y)
        assert_close(_comparable(x, y), _comparable(y, x), rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=both,
                     check_device=exact_device, check_layout=exact_layout, check_stride=exact_stride,
                     msg=None if msg is None else lambda text: f"{text}\n{msg(text) if callable(msg) else msg}")

    def assertNotEqual(self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None,  # type: ignore[override]
                       rtol: float | None = None, **options: Any) -> None:
        """The opposite of `assertEqual`."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **options)

    def assertEqualIgnoreType(self, *args: Any, **kwargs: Any) -> None:
        """`assertEqual` that does not look at element types."""
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertExpectedInline(self, actual: Any, expect: str, skip: int = 0) -> None:
        """The text is the expected one. Rewriting it in the file, as PyTorch's helper can, is not supported."""
        if os.getenv("EXPECTTEST_ACCEPT"):
            raise NotImplementedError("assertExpectedInline: EXPECTTEST_ACCEPT needs the package expecttest")
        super().assertEqual(str(actual), expect)

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
        """A warning that PyTorch shows once; here each call shows it."""
        with self.assertWarnsRegex(category, regex):
            yield


def _numeric(value: Any) -> bool:
    """Whether tolerance makes sense for a value."""
    if isinstance(value, (Tensor, np.ndarray, np.number, bool, int, float, complex)):
        return True
    if isinstance(value, dict):
        return bool(value) and all(_numeric(item) for item in value.values())
    return isinstance(value, (list, tuple)) and bool(value) and all(_numeric(item) for item in value)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_tensor, value.values()))
    return any(map(_has_tensor, value)) if isinstance(value, (list, tuple)) else isinstance(value, (Tensor, np.ndarray))


def _comparable(value: Any, other: Any) -> Any:
    """A value in a form that `assert_close` takes: no NumPy types, and a number as large as the tensor beside it."""
    if isinstance(value, np.number):
        value = value.item()
    if isinstance(value, (bool, int, float, complex)) and isinstance(other, Tensor):
        return other.new_full(other.shape, value)
    return value


# -- decorators --------------------------------------------------------------------------------------------------------


def _unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def skipIfTorchDynamo(msg: str = "") -> Decorator:
    """Skip under a compiler: there is none, so the test runs."""
    return _unchanged


def skipIfXpu(func: Any = None, *, msg: str = "") -> Any:
    """Skip on Intel's GPUs: there is none, so the test runs."""
    return _unchanged if func is None or isinstance(func, str) else func


def skipIfRocm(func: Any = None, *, msg: str = "") -> Any:
    """Skip on AMD's GPUs: there is none, so the test runs."""
    return _unchanged if func is None or isinstance(func, str) else func


def skipIfCrossRef(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Skip in a mode that PyTorch's builds have: the test runs."""
    return fn


def skipIfNoDill(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Skip where a package is missing."""
    return unittest.skip("no dill")(fn)


def skipIfWindows(func: Any = None, *, msg: str = "not supported on Windows") -> Any:
    """Skip on Windows."""
    decorate = unittest.skipIf(IS_WINDOWS, msg)
    return decorate if func is None else decorate(func)


def skipIfPythonVersionMismatch(predicate: Callable[[int, int, int], bool]) -> Decorator:
    """Skip unless a condition on Python's version holds."""
    version = sys.version_info
    return unittest.skipIf(not predicate(version.major, version.minor, version.micro), "other Python version needed")


def serialTest(condition: bool = True) -> Decorator:
    """Mark a test that must not run beside others."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.serial = condition  # type: ignore[attr-defined]
        return function

    return mark


def slowTest(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Skip unless PYTORCH_TEST_WITH_SLOW=1 asks for slow tests."""

    @functools.wraps(fn)
    def test(*args: Any, **kwargs: Any) -> Any:
        if not TEST_WITH_SLOW:
            raise unittest.SkipTest("test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test")
        return fn(*args, **kwargs)

    return test


def slowTestIf(condition: bool) -> Decorator:
    """`slowTest` if something holds."""
    return slowTest if condition else _unchanged


# -- files and running -------------------------------------------------------------------------------------------------


@contextmanager
def TemporaryFileName(*args: Any, **kwargs: Any) -> Iterator[str]:
    """The name of a file that is there inside the block."""
    kwargs.pop("delete", None)
    handle = tempfile.NamedTemporaryFile(*args, delete=False, **kwargs)  # type: ignore[call-overload]  # noqa: SIM115
    handle.close()
    try:
        yield handle.name
    finally:
        if os.path.exists(handle.name):
            os.unlink(handle.name)


@contextmanager
def TemporaryDirectoryName(suffix: str | None = None) -> Iterator[str]:
    """The name of a directory that is there inside the block."""
    name = tempfile.mkdtemp(suffix=suffix)
    try:
        yield name
    finally:
        shutil.rmtree(name, ignore_errors=True)


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the main program."""
    unittest.main(argv=sys.argv if argv is None else argv)

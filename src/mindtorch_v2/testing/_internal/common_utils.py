"""`torch.testing._internal.common_utils`: what PyTorch's tests use from there.

The flags say what this runtime has: a CPU, and neither compilers nor other vendors' devices. Flags and marks for what
is not here are many and come and go with PyTorch's versions, so they are known by how they are named (`__getattr__`).
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import inspect
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
import types
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._absent import refusing
from ..._dtype import bfloat16 as _bfloat16
from ..._dtype import float16 as _float16
from ..._dtype import float32 as _float32
from ..._dtype import float64 as _float64
from ..._settings import are_deterministic_algorithms_enabled, is_warn_always_enabled, set_warn_always
from ..._storage_removal import Removal
from ..._tensor import Tensor
from ...utils._dtype_abbrs import dtype_abbrs  # noqa: F401 (tests import it from here)
from .._creation import make_tensor
from .._utils import freeze_rng_state
from .common_dtype import get_all_dtypes
from .random_matrices import (
    make_fullrank_matrices_with_distinct_singular_values,
    make_symmetric_matrices,
    make_symmetric_pd_matrices,
    random_hermitian_matrix,
    random_hermitian_pd_matrix,
    random_hermitian_psd_matrix,
    random_lowrank_matrix,
    random_matrix,
    random_sparse_matrix,
    random_sparse_pd_matrix,
    random_square_matrix_of_rank,
    random_symmetric_matrix,
    random_symmetric_pd_matrix,
    random_symmetric_psd_matrix,
    random_well_conditioned_matrix,
)
from .tensor_helpers import (
    BytesIOContext,
    bytes_to_scalar,
    chunk_list,
    clone_input_helper,
    compare_equal_outs_and_grads,
    do_test_dtypes,
    do_test_empty_full,
    first_sample,
    get_tensors_from,
    gradcheck,
    gradgradcheck,
    has_corresponding_torch_dtype,
    is_iterable,
    is_iterable_of_tensors,
    iter_indices,
    noncontiguous_like,
    numpy_to_torch_dtype,
    numpy_to_torch_dtype_dict,
    outs_and_grads,
    torch_to_numpy_dtype_dict,
)
from .tensor_helpers import check_gradients as _assertGradAndGradgradChecks
from .test_case import SEED, TestCase, set_rng_seed
from .test_conditions import (
    DeterministicGuard,
    _unchanged,
    decorateIf,
    disable_gc,
    dtype_name,
    load_tests,
    markDynamoStrictTest,
    requires_cuda,
    retry,
    runs_anyway,
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
from .test_conditions import set_default_tensor_type_to as set_default_tensor_type
from .test_parametrization import instantiate_parametrized_tests, parametrize, reparametrize, subtest

__all__ = [
    "SEED",
    "BytesIOContext",
    "DeterministicGuard",
    "TemporaryDirectoryName",
    "TemporaryFileName",
    "TestCase",
    "_assertGradAndGradgradChecks",
    "bytes_to_scalar",
    "chunk_list",
    "clone_input_helper",
    "compare_equal_outs_and_grads",
    "decorateIf",
    "disable_gc",
    "do_test_dtypes",
    "do_test_empty_full",
    "dtype_name",
    "first_sample",
    "freeze_rng_state",
    "get_all_dtypes",
    "get_tensors_from",
    "gradcheck",
    "gradgradcheck",
    "has_corresponding_torch_dtype",
    "instantiate_parametrized_tests",
    "is_iterable",
    "is_iterable_of_tensors",
    "iter_indices",
    "load_tests",
    "make_fullrank_matrices_with_distinct_singular_values",
    "make_symmetric_matrices",
    "make_symmetric_pd_matrices",
    "make_tensor",
    "markDynamoStrictTest",
    "noncontiguous_like",
    "numpy_to_torch_dtype",
    "numpy_to_torch_dtype_dict",
    "outs_and_grads",
    "parametrize",
    "random_hermitian_matrix",
    "random_hermitian_pd_matrix",
    "random_hermitian_psd_matrix",
    "random_lowrank_matrix",
    "random_matrix",
    "random_sparse_matrix",
    "random_sparse_pd_matrix",
    "random_square_matrix_of_rank",
    "random_symmetric_matrix",
    "random_symmetric_pd_matrix",
    "random_symmetric_psd_matrix",
    "random_well_conditioned_matrix",
    "reparametrize",
    "requires_cuda",
    "retry",
    "run_tests",
    "serialTest",
    "set_cwd",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_rng_seed",
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
    "torch_to_numpy_dtype_dict",
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
# Whether devices other than the CPU may be profiled, and the types of those that tests of the profiler know.
ALLOW_XPU_PROFILING_TEST = True
DEVICE_LIST_SUPPORT_PROFILING_TEST = ("cpu", "cuda", "xpu")
TEST_CUDA = TEST_MPS = TEST_XPU = TEST_HPU = TEST_CUDA_GRAPH = TEST_PRIVATEUSE1 = TEST_ACCELERATOR = False
TEST_MKL = TEST_MKLDNN = TEST_CUDNN = False
TEST_SCIPY = importlib.util.find_spec("scipy") is not None
TEST_DILL = importlib.util.find_spec("dill") is not None
TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_UBSAN = TEST_WITH_ROCM = TEST_WITH_CROSSREF = False
TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = TEST_WITH_AOT_EAGER = TEST_WITH_SLOW_GRADCHECK = False
TEST_WITH_SLOW = os.getenv("PYTORCH_TEST_WITH_SLOW", "0") == "1"
TEST_SKIP_FAST = os.getenv("PYTORCH_TEST_SKIP_FAST", "0") == "1"
TEST_WITH_DEV_DBG_ASAN = TEST_LIBROSA = TEST_NUMBA = TEST_OPT_EINSUM = IS_CPU_EXT_SVE_SUPPORTED = False
GRADCHECK_NONDET_TOL = 0.0
NO_MULTIPROCESSING_SPAWN = False
MI300_ARCH: tuple[str, ...] = ()

NATIVE_DEVICES = ("cpu",)
NAVI_ARCH = MI200_ARCH = MI350_ARCH = NAVI3_ARCH = NAVI4_ARCH = ()
IS_FILESYSTEM_UTF8_ENCODING = sys.getfilesystemencoding() == "utf-8"
MACOS_VERSION = -1.0
ACCELERATOR_TYPE = None
UNITTEST_ARGS = [sys.argv[0]]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
TestGradients = NestedTensorTestCase = TestCase


# What older tests allow results to be off by.
dtype2prec_DONTUSE = {_float32: 1e-5, _float64: 1e-5, _float16: 1e-2, _bfloat16: 1e-1}
NOTEST_CPU = "cpu" in os.environ.get("PYTORCH_TESTING_DEVICE_EXCEPT_FOR", "").split(",")


def mock_wrapper(method: Callable[..., Any]) -> Any:
    """A method that does its work and tells `wrapper.mock` of each call."""
    from unittest.mock import MagicMock

    told = MagicMock()

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        told(*args, **kwargs)
        return method(self, *args, **kwargs)

    wrapper.mock = told  # type: ignore[attr-defined]
    return wrapper


def __getattr__(name: str) -> Any:
    """Flags and marks for what is not here, by the way they are named."""
    if name.startswith(("TEST_", "IS_", "PLATFORM_SUPPORTS_")) and name.isupper():
        return False
    if name.startswith(("skipIfNo", "skipUnless", "requires_", "runOn")):
        # A function of this kind guards a package or a device: there is none.
        return _needs_what_is_absent(name)
    if name.startswith(("skipIf", "skipRocm", "skipCUDA", "xfailIf", "xpassIf", "runWithout")):
        return runs_anyway
    if name in _OUTSIDE:
        return refusing(name, NotImplementedError, f"{name}: {_OUTSIDE[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Helpers of PyTorch's tests for what is not part of this runtime.
_OUTSIDE = {
    **dict.fromkeys(("scoped_load_inline", "install_cpp_extension", "remove_cpp_extensions_build_root",
                     "find_library_location"), "this runtime has no C++ side to extend"),
    **dict.fromkeys(("enable_profiling_mode", "enable_profiling_mode_for_profiling_tests", "num_profiled_runs",
                     "prof_callable", "prof_func_call", "prof_meth_call", "ProfilingMode"),
                    "there is no TorchScript executor"),
    **dict.fromkeys(("get_cycles_per_ms", "to_gpu", "device_sleep", "getRocmVersion", "getRocmArchName",
                     "CudaNonDefaultStream", "CudaMemoryLeakCheck"), "there is no GPU"),
    **dict.fromkeys(("CrossRefMode", "custom_op", "make_dynamo_test"), "there is no compiler"),
    "download_file": "tests do not use the network here",
    **dict.fromkeys(("shell", "retry_shell", "wait_for_process", "parse_cmd_line_args", "get_report_path"),
                    "PyTorch's own way of running its tests"),
}


class NoTest:
    """A base for tests that are not to be run."""

    __test__ = False


class LazyVal:
    """A value that is computed when it is first asked for."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = functools.cache(compute)

    def get_value(self) -> Any:
        """The value."""
        return self.compute()

    def __bool__(self) -> bool:
        return bool(self.compute())


@contextmanager
def check_leaked_tensors(limit: int = 1, matched_type: type = Tensor) -> Iterator[Any]:
    """Warn if tensors are left in reference cycles that only the garbage collector frees."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.garbage.clear()
    try:
        yield gc.garbage
        gc.collect()
        left = [one for one in gc.garbage if isinstance(one, matched_type)]
        if left:
            warnings.warn(f"{len(left)} tensors were found in the garbage. Did you introduce a reference cycle?",
                          stacklevel=2)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def _needs_what_is_absent(name: str) -> Callable[..., Any]:
    skip = unittest.skip(f"{name}: not available here")

    def mark(first: Any = None, *args: Any, **kwargs: Any) -> Any:
        return skip(first) if callable(first) and not args and not kwargs else skip

    mark.__name__ = name
    return mark


# -- decorators --------------------------------------------------------------------------------------------------------


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


# Skip where a package is missing.
skipIfNoDill = unittest.skipIf(not TEST_DILL, "no dill")
skipIfNoSciPy = unittest.skipIf(not TEST_SCIPY, "test require SciPy, but SciPy not found")
skipIfCompiledWithoutNumpy = _unchanged  # NumPy is what the kernels are made of


def skip_exception_type(exc_type: type[BaseException]) -> Any:
    """A block whose errors of a kind skip the test."""

    @contextmanager
    def block() -> Iterator[None]:
        try:
            yield
        except exc_type as error:
            raise unittest.SkipTest(f"not implemented: {error}") from error

    return block()


def skip_but_pass_in_sandcastle_if(condition: bool, reason: str) -> Decorator:
    """Skip if something holds."""
    return unittest.skipIf(condition, reason)


def lazy_skip_if(condition: Callable[[], bool], reason: str) -> Decorator:
    """Skip if something holds when the test begins."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> Any:
            if condition():
                raise unittest.SkipTest(reason)
            return function(*args, **kwargs)

        return test

    return decorate


@contextmanager
def set_warn_always_context(new_val: bool) -> Iterator[None]:
    """Show warnings each time, or not, inside the block."""
    before = is_warn_always_enabled()
    set_warn_always(new_val)
    try:
        yield
    finally:
        set_warn_always(before)


class AlwaysWarnTypedStorageRemoval:
    """Warn of each use of a typed storage inside the block, or only of the first."""

    def __init__(self, always_warn: bool) -> None:
        self.always_warn = always_warn

    def __enter__(self) -> None:
        self.before, Removal.always = Removal.always, self.always_warn

    def __exit__(self, *exc: Any) -> None:
        Removal.always = self.before


def wrapDeterministicFlagAPITest(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Leave the choice of deterministic algorithms as it was."""
    @functools.wraps(fn)
    def test(*args: Any, **kwargs: Any) -> Any:
        with DeterministicGuard(are_deterministic_algorithms_enabled()):
            return fn(*args, **kwargs)

    return test


def wrapSwapTensorsTest(swap: bool | None = None) -> Decorator:
    """Run a test with parameters swapped by `module.to`, with parameters changed by it, or (None) as it is set."""
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def test(*args: Any, **kwargs: Any) -> Any:
            with SwapTensorsGuard(swap):
                return fn(*args, **kwargs)

        return test

    return decorate


class swap(parametrize):
    """Run a test once for each way of `module.to`; the test is not given which."""

    def __init__(self, swap_values: Iterable[bool]) -> None:
        super().__init__("", swap_values)

    def variants(self) -> Iterator[Any]:
        """The ways."""
        for value in self.values:
            yield f"swap_{value}", {}, (wrapSwapTensorsTest(value),)


def coalescedonoff(f: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test of sparse tensors with coalesced ones and others."""

    @functools.wraps(f)
    def test(self: Any, *args: Any, **kwargs: Any) -> None:
        for coalesced in (True, False):
            f(self, *args, **kwargs, coalesced=coalesced)

    return test


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


def setLinalgBackendsToDefaultFinally(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Leave the choice of a library for linear algebra as it was: there is none to make."""
    return fn


setBlasBackendsToDefaultFinally = setSdpaBackendsToDefaultFinally = setLinalgBackendsToDefaultFinally
recover_orig_fp32_precision = with_ieee_matmul_precision = gcIfJetson = setLinalgBackendsToDefaultFinally


def isRocmArchAnyOf(arch: tuple[str, ...]) -> bool:
    """Whether there is one of AMD's GPUs: no."""
    return False


class CudaSyncGuard:
    """Another way to wait for CUDA inside the block: nothing here."""

    def __init__(self, sync_debug_mode: str) -> None:
        self.sync_debug_mode = sync_debug_mode

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None


class SwapTensorsGuard:
    """Parameters are swapped, not copied, by `module.to` inside the block, or not."""

    def __init__(self, use_swap_tensors: bool | None) -> None:
        self.wanted = use_swap_tensors
        self.future = importlib.import_module("mindtorch_v2.__future__")

    def __enter__(self) -> None:
        self.before = self.future.get_swap_module_params_on_conversion()
        if self.wanted is not None:
            self.future.set_swap_module_params_on_conversion(self.wanted)

    def __exit__(self, *exc: Any) -> None:
        self.future.set_swap_module_params_on_conversion(self.before)


def get_function_arglist(func: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters."""
    return list(inspect.signature(func).parameters)


def copy_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """Another function with the same code."""
    made = types.FunctionType(f.__code__, f.__globals__, name=f.__name__,
                              argdefs=f.__defaults__, closure=f.__closure__)
    made.__kwdefaults__ = f.__kwdefaults__
    return functools.update_wrapper(made, f)


def xfail_inherited_tests(tests: list[str]) -> Callable[[type], type]:
    """These tests of a base class must fail in this class."""

    def decorate(cls: type) -> type:
        for name in tests:
            setattr(cls, name, unittest.expectedFailure(copy_func(getattr(cls, name))))
        return cls

    return decorate


def skip_but_pass_in_sandcastle(reason: str) -> Decorator:
    """Skip."""
    return unittest.skip(reason)


def munge_exc(e: Any, *, suppress_suffix: bool = True, suppress_prefix: bool = True, file: str | None = None,
              skip: int = 0) -> str:
    """An error's text without lines of files."""
    return re.sub(r'File "[^"]+", line \d+', 'File "", line ', str(e))


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


def find_free_port() -> int:
    """The number of a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])


def raise_on_run_directly(file_to_call: str) -> None:
    """What a file of tests does that cannot be run by itself."""
    raise RuntimeError(f"This test file is not meant to be run directly, use:\n\n\tpython {file_to_call} TESTNAME\n\n"
                       "instead.")


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the main program."""
    unittest.main(argv=sys.argv if argv is None else argv)

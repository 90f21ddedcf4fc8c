"""Who computes what: our kernels in C, oneDNN, or NumPy.

NumPy can compute everything, and tests compare the others with it. A rule says when another provider computes some
kernels; its docstring is the condition in words, for `docs/kernels.md`. A kernel asks its rule and uses NumPy if the
rule says no. With `MINDTORCH_KERNELS=numpy` all rules say no. With `MINDTORCH_KERNELS=native` the import fails if there
are no C kernels.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

Array = Any
Condition = Callable[..., bool]

VERSION = 8  # of the C interface: a build from older sources is not used
FLOAT32 = np.dtype(np.float32)


def _load(wish: str) -> tuple[ModuleType | None, str]:
    """The C kernels if they are wanted and installed; otherwise the reason why not."""
    if wish not in ("", "native", "numpy"):
        raise ValueError(f"MINDTORCH_KERNELS={wish!r}: expected 'native', 'numpy' or nothing")
    if wish == "numpy":
        return None, "MINDTORCH_KERNELS=numpy"
    try:
        module = import_module("._kernels", __package__)
        if module.VERSION != VERSION:
            raise ImportError(f"_kernels has version {module.VERSION}, this needs {VERSION}: run 'make native'")
    except ImportError as trouble:
        if wish == "native":
            raise
        return None, str(trouble)
    return module, ""


class Rule(NamedTuple):
    """A provider, its kernels, and the condition under which it computes them."""

    provider: str
    kernels: tuple[str, ...]
    condition: str


NUMPY_ONLY = os.environ.get("MINDTORCH_KERNELS", "") == "numpy"
native: Any
native, MISSING = _load(os.environ.get("MINDTORCH_KERNELS", ""))
RULES: list[Rule] = []


def rule(provider: str, *kernels: str) -> Callable[[Condition], Condition]:
    """Add a condition to the table."""

    def decorate(condition: Condition) -> Condition:
        words = " ".join((condition.__doc__ or "").split())
        RULES.append(Rule(provider, kernels, words))
        return condition

    return decorate


def first_threads() -> int:
    """How many threads kernels use at first: OMP_NUM_THREADS as PyTorch reads it, or all processors of the process."""
    wish = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if native is not None:
    native.set_threads(first_threads())


@contextmanager
def numpy_only() -> Iterator[None]:
    """Let NumPy compute everything inside, as `MINDTORCH_KERNELS=numpy` does."""
    global native, NUMPY_ONLY
    before = native, NUMPY_ONLY
    if native is not None:
        native.switch_elementwise(False)
    native, NUMPY_ONLY = None, True
    try:
        yield
    finally:
        native, NUMPY_ONLY = before
        if native is not None:
            native.switch_elementwise(True)


def direct(name: str) -> Callable[[Any], Any]:
    """Decorator: a kernel in C tries first and computes what it can. It checks its arguments itself, so a small call
    costs no more than the call. This function computes the rest."""

    def decorate(function: Any) -> Any:
        return function if native is None else native.Direct(name, function)

    return decorate


def around(kernel: Any, wrapper: Callable[[Any], Any]) -> Any:
    """A kernel with a check around it. A kernel in C stays outermost: it takes only what passes every check."""
    if native is not None and type(kernel) is native.Direct:
        return native.Direct(kernel.name, wrapper(kernel.function))
    return wrapper(kernel)


# -- our own -----------------------------------------------------------------------------------------------------------


@rule("native", "softmax", "log_softmax", "their backwards", "layer_norm", "its backward", "batch_norm", "group_norm",
      "their backwards", "embedding backward", "nll_loss", "its backward", "index_add", "sum", "prod",
      "max, min, argmax, argmin, amax, amin", "cumsum, cumprod, cummax, cummin, logcumsumexp", "topk", "cdist",
      "ctc_loss",
      "max and mean pooling of images and lines", "adaptive pooling of images", "interpolate", "grid_sample", "nonzero",
      "histc, bincount, unique, aminmax")
def rows(*arrays: Array) -> bool:
    """float32 (16-bit floats are widened first) in row-major order. Norms, softmax and topk along the last dimensions;
    reductions over neighbouring dimensions; topk of at most 64; cdist with p = 2; grid_sample of images, not bicubic.
    NumPy computes small sums and large `aminmax`. For int64: sums over the last dimensions, `bincount`, and small
    `unique` of numbers that are close together. For bool: nonzero."""
    if native is None:
        return False
    return arrays[0].size > 0 and all(a.dtype is FLOAT32 and a.flags.c_contiguous for a in arrays)


@rule("native", "add", "sub", "mul", "div", "neg", "abs", "exp", "log", "tanh", "sqrt", "rsqrt",
      "reciprocal", "sigmoid", "erf", "silu", "gelu", "relu", "elu, selu, celu", "leaky_relu", "hardtanh, hardsigmoid, "
      "hardswish, relu6", "softplus, softshrink, logsigmoid", "glu", "backwards of activations", "mse_loss",
      "smooth_l1_loss", "huber_loss", "sign", "fmod, remainder", "lgamma, digamma", "lerp", "addcmul, addcdiv")
def elements(*arrays: Array) -> bool:
    """float32, all operands in row-major order and of one shape; with two operands, one may be a number, a row or a
    column, also an expanded one. 16-bit floats of one shape. Large arrays of other types, and functions that NumPy has,
    use NumPy's inner loops on several threads."""
    if native is None:
        return False
    shape = arrays[0].shape
    return all(type(a) is np.ndarray and a.dtype is FLOAT32 and a.flags.c_contiguous and a.shape == shape
               for a in arrays)


@rule("native", "gather", "scatter, scatter_add", "one_hot")
def along(a: Array, dim: int, index: Array) -> bool:
    """Row-major order, elements of 4 or 8 bytes (scatter_add: float32), as many indices as elements in all dimensions
    but one, not empty."""
    return (native is not None and a.flags.c_contiguous and a.dtype.itemsize in (4, 8) and a.size > 0
            and index.ndim == a.ndim and index.shape[:dim] == a.shape[:dim]
            and index.shape[dim + 1:] == a.shape[dim + 1:])


@rule("native", "scaled dot-product attention", "its backward")
def attention(*heads: Array) -> bool:
    """float32 (16-bit floats are widened first), not empty, the features of a head next to each other."""
    if native is None:
        return False
    return all(a.dtype is FLOAT32 and a.size and a.strides[3] == 4 and a.flags.aligned for a in heads)


@rule("native", "mm", "addmm", "linear")
def matrices(a: Array, b: Array) -> bool:
    """float32 matrices. `matmul` in C checks this itself and returns None for others."""
    return native is not None


@rule("native", "bmm", "baddbmm", "matmul of batches")
def batches(a: Array, b: Array) -> bool:
    """float32 batches of matrices of three or more dimensions, with at least four rows and columns."""
    return (native is not None and a.dtype is b.dtype is FLOAT32 and min(a.ndim, b.ndim) > 2 and a.shape[-2] > 3
            and b.shape[-1] > 3 and a.flags.aligned and b.flags.aligned)


@rule("native", "linalg.qr", "linalg.cholesky")
def factors(a: Array) -> bool:
    """float32, not empty; Cholesky factors of positive matrices of at most 16 rows."""
    return native is not None and a.dtype is FLOAT32 and a.size > 0


@rule("native", "layers of lstm, gru, rnn_tanh, rnn_relu", "their backwards")
def recurrent(*arrays: Array) -> bool:
    """float32 (16-bit floats are widened first), weights and states in row-major order, not empty."""
    return native is not None and all(a.dtype is FLOAT32 and a.flags.c_contiguous and a.size for a in arrays)


@rule("native", "convolution", "its backward")
def windows(images: tuple[int, ...], out: tuple[int, ...], window: Any, *arrays: Array) -> bool:
    """float32 (16-bit floats are widened first), not empty, windows that a forward convolution can have."""
    return (native is not None and all(a.dtype is FLOAT32 and a.size for a in arrays)
            and min(images) > 0 and min(out) > 0 and window.output(images[2:]) == tuple(out))


@rule("onednn", "convolution", "its backward")
def onednn() -> bool:
    """There are no C kernels, the library is installed (the extra `fast`), and the process was not forked from one that
    used it; float32, not empty."""
    return not NUMPY_ONLY and native is None


@rule("native", "steps of SGD, Adam, AdamW, Adagrad")
def parameters(*arrays: Array | None) -> bool:
    """With `fused=True`: float32, parameter, gradient and state in row-major order, gradients without a scale."""
    return native is not None and all(a is None or (a.dtype is FLOAT32 and a.flags.c_contiguous) for a in arrays)


@rule("native", "rand", "randn", "randint", "randperm", "bernoulli", "dropout's mask", "multinomial",
      "poisson, binomial")
def draws() -> bool:
    """rand of float32 and float64; randn of float32 on a processor with fused instructions; randint and randperm of
    int64 (randperm below 214 million); bernoulli with one probability into float32 or bool, or with float32
    probabilities; multinomial of float32 with replacement; poisson; binomial. Every bit equals NumPy's."""
    return native is not None


@rule("native", "fft, rfft, irfft and similar")
def spectra(a: Array, sizes: tuple[int, ...]) -> bool:
    """float32 and complex64, not empty, lengths without a prime factor above 31; for lengths above 2048 at least eight
    transforms."""
    return native is not None and a.dtype.itemsize == (8 if a.dtype.kind == "c" else 4) and a.size > 0 and all(
        largest_factor(n) <= 31 and (n <= 2048 or a.size >= 8 * n) for n in sizes)


@functools.lru_cache(maxsize=256)
def largest_factor(n: int) -> int:
    """The largest prime that divides a number, 1 of 1."""
    largest, factor = 1, 2
    while n > 1:
        while n % factor == 0:
            largest, n = factor, n // factor
        factor += 1
        if factor * factor > n > 1:
            return max(largest, n)
    return largest


@rule("native", "arange", "fill_, zero_", "copies", "cat, stack", "index_select, embedding, index by one tensor",
      "tril, triu", "reflection_pad, replication_pad")
def moves() -> bool:
    """arange of int64. Filling contiguous memory with zeros, or float32 with a number. Copies of elements of 1, 2, 4 or
    8 bytes between arrays of one shape and type that have no memory in common. cat and stack of up to 64 arrays of one
    type in row-major order. Slices by indices of int64, both in row-major order. Triangles of matrices in row-major
    order. Padding of float32 in row-major order."""
    return native is not None


@rule("native", "searchsorted, bucketize")
def searches() -> bool:
    """float32 in row-major order. `search` in C checks this itself."""
    return native is not None


@rule("native", "float32 to and from float16, bfloat16, float64, int64 and bool", "float64 to and from int64",
      "int32 to and from int64", "int32 to float32", "bool and uint8 to int64 and float32", "float32 to uint8",
      "int64 to bool")
def conversions() -> bool:
    """Both in row-major order; float16 on a processor with instructions for it; floats to integers on x86. `convert` in
    C checks this itself."""
    return native is not None


# -- what ran ----------------------------------------------------------------------------------------------------------

# Runs of oneDNN's primitives, which `onednn/plan.py` counts.
onednn_calls = {"convolution": 0}


def calls() -> dict[str, dict[str, int]]:
    """How often each provider but NumPy has computed each kernel since the start."""
    return {"native": {} if native is None else native.calls(), "onednn": dict(onednn_calls)}


class Tally:
    """Counts what providers compute until `stop`: `made` has the kernels that ran, without NumPy's."""

    def __init__(self) -> None:
        self._before = calls()
        self.made: dict[str, dict[str, int]] = {}

    def stop(self) -> None:
        """Count."""
        for provider, found in calls().items():
            before = self._before[provider]
            ran = {kernel: count - before.get(kernel, 0) for kernel, count in found.items()
                   if count > before.get(kernel, 0)}
            if ran:
                self.made[provider] = ran


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = """# Who computes what

Generated from `_backends/cpu/providers.py` by `make docs`; do not edit.

NumPy can compute every kernel, and tests compare the other providers with it. The first provider whose condition holds
computes; if there is none, NumPy does. With `MINDTORCH_KERNELS=numpy` NumPy computes everything. With
`MINDTORCH_KERNELS=native` the import fails if there are no C kernels. `torch.__config__.show()` says which kernels
there are. A recording's metadata (`kernel_providers`) says which ran and how often.

| provider | kernels | condition |
|---|---|---|
"""


def page() -> str:
    """The text of docs/kernels.md."""
    return PAGE + "\n".join(f"| {r.provider} | {', '.join(r.kernels)} | {r.condition} |" for r in RULES) + "\n"


def describe() -> str:
    """One line: what computes here, and what is missing."""
    if native is not None:
        return f"C kernels ({native.level()}, {native.threads()} threads)"
    return f"NumPy alone, without the C kernels: {MISSING}"

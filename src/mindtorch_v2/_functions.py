"""Functions and classes of `torch` that are not ops: control flow on tensors, shapes, exchange, what was built in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from . import cpu
from ._autograd.anomaly import switch
from ._backends.overlap import dense
from ._construct import tensor
from ._device import DeviceLike, as_device
from ._dispatch.namespace import aten
from ._dispatch.overriding import DisableTorchFunction, DisableTorchFunctionSubclass  # noqa: F401  (torch has them)
from ._dtype import DefaultDtype, DType, int64
from ._errors import AcceleratorError, OutOfMemoryError  # noqa: F401  (torch has them)
from ._memory_format import MemoryFormat, contiguous_format
from ._shape import Size
from ._tensor import (  # noqa: F401  (the layouts are found here)
    Tensor,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
    wrap,
)
from ._typed_storage import map_file

# -- memory -----------------------------------------------------------------------------------------------------------


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Whether a tensor shows an element twice: 0 for no, 1 for yes, 2 if its strides do not say."""
    array = input._a
    if dense(array):
        return 0
    return 1 if any(step == 0 and count > 1 for step, count in zip(array.strides, array.shape)) else 2


def _is_zerotensor(input: Tensor) -> bool:
    """False: a tensor of zeros without memory, as PyTorch makes in forward mode, has memory here."""
    return False


# -- shapes and control flow -----------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all of these broadcast to."""
    result: list[int] = []
    for number, given in enumerate(shapes):
        if not isinstance(given, (int, tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {given}")
        shape = (given,) if isinstance(given, int) else tuple(given)
        result = [1] * (len(shape) - len(result)) + result
        for place in range(-1, -len(shape) - 1, -1):
            extent = shape[place]
            if extent < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if extent == 1 or extent == result[place]:
                continue
            if result[place] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {extent} at {place}! Mismatching "
                                   f"argument at index {number} had {shape}; but expected shape should be "
                                   f"broadcastable to {result}")
            result[place] = extent
    return Size(result)


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The shape as a tensor of integers."""
    return tensor(list(input.shape), dtype=int64)


def _segment_reduce(data: Tensor, reduce: str, **kwargs: Any) -> Tensor:
    """The older name of `torch.segment_reduce`."""
    made: Tensor = aten.segment_reduce(data, reduce, **kwargs)
    return made


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Call one of two functions."""
    if not isinstance(pred, (bool, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred._a.size != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("Expect both branches to be callable.")
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def zero_(input: Tensor) -> Tensor:
    """Set every element to 0."""
    return aten.zero_(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two shapes are equal."""
    return aten.is_same_size(input, other)


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    if not isinstance(input, Tensor):
        raise TypeError(f"is_signed(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.dtype.is_signed


def is_conj(input: Tensor) -> bool:
    """Whether a tensor is a view that shows the conjugates of what is in memory."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Whether a tensor is a view that shows the negatives of what is in memory."""
    return input.is_neg()


def is_distributed(input: Tensor) -> bool:
    """False: no tensor is spread over processes."""
    return input.is_distributed()


def is_inference(input: Tensor) -> bool:
    """Whether a tensor's memory was made in `inference_mode`."""
    return input.is_inference()


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Change a tensor's shape to another's."""
    return aten.resize_as_(input, the_template, memory_format=memory_format)


def get_device(input: Tensor) -> int:
    """The number of the tensor's device, -1 for the host."""
    return -1 if input.is_cpu else input.device.index or 0


def get_device_module(device: DeviceLike = None) -> ModuleType:
    """`torch.cpu` for the CPU, and so on."""
    kind = "cpu" if device is None else as_device(device).type
    package = sys.modules[__package__ or ""]
    found = getattr(package, kind, None)
    if not isinstance(found, ModuleType):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return found


# -- Python numbers where PyTorch's compiler would have symbols ------------------------------------------------------


def sym_int(a: Any) -> int:
    """An integer, rounded towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """A float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """The opposite."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float if either is one."""
    both = float if isinstance(a, float) or isinstance(b, float) else lambda x: x
    return both(max(a, b))


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float if either is one."""
    both = float if isinstance(a, float) or isinstance(b, float) else lambda x: x
    return both(min(a, b))


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return float(a) ** 0.5


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum."""
    return sum(args)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """One of two values."""
    return t if b else f


# -- exchange and files ----------------------------------------------------------------------------------------------


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule with which another library can use the memory."""
    return tensor.__dlpack__()


def from_file(filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: DType | None = None,
              layout: Any = None, device: DeviceLike = None, pin_memory: bool = False) -> Tensor:
    """A tensor on a file's contents; with `shared` changes go to the file, which is created if necessary."""
    kind = (dtype or DefaultDtype.value).np
    return wrap(map_file(filename, bool(shared), int(size or 0) * kind.itemsize).view(kind))


# -- what was built in -----------------------------------------------------------------------------------------------

# LAPACK, through NumPy, and Fourier transforms are there; Intel's library and OpenMP are not used.
has_lapack = has_spectral = True
has_mkl = has_openmp = False
newaxis = None
legacy_contiguous_format = contiguous_format
layout = type(strided)
sparse_bsr, sparse_bsc, jagged = (layout(f"torch.{name}") for name in ("sparse_bsr", "sparse_bsc", "jagged"))
_mkldnn = layout("torch._mkldnn")


def compiled_with_cxx11_abi() -> bool:
    """True, as for every PyTorch since 2.6; there is no C++ library here that could have another."""
    return True


def is_vulkan_available() -> bool:
    """False."""
    return False


def cudnn_is_acceptable(tensor: Tensor) -> bool:
    """False: there is no CUDA."""
    return False


def init_num_threads() -> None:
    """Nothing: NumPy has started its threads already."""


def set_flush_denormal(mode: bool) -> bool:
    """False: the processor's treatment of tiny numbers cannot be changed from here."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch the search for NaN in backward on or off."""
    switch(bool(mode), check_nan)


class FatalError(Exception):
    """PyTorch's own fatal error; this runtime does not raise it."""


class JITException(Exception):
    """An error inside a scripted function; this runtime has none."""


class Stream(cpu.Stream):
    """The order of the program on a device."""

    def __init__(self, device: DeviceLike = None, *, priority: int = 0) -> None:
        super().__init__(priority)
        self.device = as_device("cpu" if device is None else device)
        if self.device.type != "cpu":
            raise RuntimeError(f"torch.Stream: no streams on {self.device}; the host runs everything in order")
        self.stream_id, self.device_index, self.device_type = 0, -1, 1

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """True: everything is done."""
        return True

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """An event that has passed."""
        return Event() if event is None else event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "torch.Stream device_type=cpu, device_index=-1, stream_id=0"


class Event(cpu.Event):
    """A moment on a device that has always passed."""

    def __init__(self, device: DeviceLike = None, *, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False) -> None:
        self.device = as_device("cpu" if device is None else device)
        self.event_id = 0


def _assert(condition: Any, message: str) -> None:
    """An assertion as a function, for models that are traced."""
    assert condition, message


def classproperty(func: Callable[[Any], Any]) -> Any:
    """A property of the class itself."""

    class _ClassProperty:
        def __get__(self, instance: Any, owner: type) -> Any:
            return func(owner)

    return _ClassProperty()

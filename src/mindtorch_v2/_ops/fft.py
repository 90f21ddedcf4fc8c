"""Discrete Fourier transforms: three kernels, and the public transforms that prepare their input."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from .._backends.cpu import fft as kernels
from .._device import DeviceLike
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import declare
from .._dtype import FLOAT, DefaultDtype, DType, as_dtype
from .._shape import wrap_dim
from .._tensor import Tensor

# -- kernels ---------------------------------------------------------------------------------------------------------


def _r2c_backward(grad: Tensor, self_shape: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    if onesided:
        last = dim[-1] % len(self_shape)
        missing = self_shape[last] - grad._a.shape[last]
        # The mirrored half did not contribute: it gets zeros.
        padding = [0, 0] * (len(self_shape) - 1 - last) + [0, missing]
        grad = aten.constant_pad_nd(grad, padding)
    return aten.real(aten._fft_c2c(grad, dim, normalization, False))


def _c2r_backward(grad: Tensor, dim: Any, normalization: int) -> Any:
    made = aten._fft_r2c(grad, dim, normalization, True)
    last = dim[-1]
    size = made._a.shape[last]
    twice = grad._a.shape[last] - size
    if twice <= 0:
        return made
    # Every element but the first (and the middle one of an even length) stood for two.
    pieces = [aten.narrow(made, last, 0, 1), aten.narrow(made, last, 1, twice) * 2]
    if size - 1 - twice:
        pieces.append(aten.narrow(made, last, 1 + twice, size - 1 - twice))
    return aten.cat(pieces, last)


declare("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", cpu=kernels.c2c, where="f",
        node="FftC2CBackward0",
        grad={"self": lambda grad, dim, normalization, forward: aten._fft_c2c(grad, dim, normalization, not forward)})
declare("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", cpu=kernels.r2c, where="f",
        node="FftR2CBackward0", grad={"self": _r2c_backward})
declare("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", cpu=kernels.c2r,
        where="f", node="FftC2RBackward0", grad={"self": _c2r_backward})


# -- preparing -------------------------------------------------------------------------------------------------------


def _normalization(norm: str | None, forward: bool) -> int:
    if norm == "ortho":
        return kernels.BY_ROOT
    if norm not in (None, "forward", "backward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return kernels.BY_COUNT if (norm == "forward") == forward else kernels.NONE


def _promoted(x: Tensor, complex_wanted: bool = False) -> Tensor:
    if x.dtype.category < FLOAT:
        x = aten.to(x, DefaultDtype.value)
    if x._a.dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {pretty(x.dtype)}")
    return aten.to(x, x.dtype.to_complex()) if complex_wanted and not x.dtype.is_complex else x


def _real_only(name: str, x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        real = "real-valued" if name.endswith("n") else "real"  # programs match the words
        raise RuntimeError(f"{name} expects a {real} input tensor, but got {pretty(x.dtype)}")
    return _promoted(x)


def _resized(x: Tensor, dims: list[int], sizes: list[int]) -> Tensor:
    """Cut or padded with zeros at the end, to the sizes asked for; -1 leaves a dimension as it is."""
    padding = [0] * (2 * x.ndim)
    for dim, size in zip(dims, sizes, strict=True):
        if size == -1:
            continue
        have = x._a.shape[dim]
        if size < have:
            x = aten.slice(x, dim, 0, size)
        elif size > have:
            padding[2 * (x.ndim - 1 - dim) + 1] = size - have
    return aten.constant_pad_nd(x, padding) if any(padding) else x


def _check_size(size: int) -> None:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")


def _one(x: Tensor, n: int | None, dim: int) -> tuple[Tensor, list[int]]:
    if n is not None:
        _check_size(n)
    ndim = x._a.ndim
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    place = wrap_dim(dim, ndim)
    if n is not None:
        x = _resized(x, [place], [n])
    _check_size(x._a.shape[place])
    return x, [place]


def _several(x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """Dimensions, and the size wanted for each."""
    if s is not None and not isinstance(s, (list, tuple)):
        s = (s,)
    if dim is not None:
        dims = [wrap_dim(d, x.ndim) for d in (dim if isinstance(dim, (list, tuple)) else (dim,))]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    else:
        if s is not None and len(s) > x.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        dims = list(range(x.ndim - len(s) if s is not None else 0, x.ndim))
    if s is not None and len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length, got "
                           f"{len(dims)} and {len(s)}")
    sizes = [-1] * len(dims) if s is None else [operator.index(size) for size in s]
    for size, place in zip(sizes, dims, strict=True):
        _check_size(x._a.shape[place] if size == -1 else size)
    return dims, sizes


# -- one dimension ---------------------------------------------------------------------------------------------------


def _complex_1d(forward: bool) -> Callable[..., Tensor]:
    def transform(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
        normalization = _normalization(norm, forward)
        x, dims = _one(_promoted(self), n, dim)
        if x.dtype.is_complex:
            return aten._fft_c2c(x, dims, normalization, forward)
        made = aten._fft_r2c(x, dims, normalization, False)
        # Of real input, the inverse transform is the mirror image of the forward one.
        return made if forward else aten.conj(made)

    return transform


def _rfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    x, dims = _one(_real_only("rfft", self), n, dim)
    return aten._fft_r2c(x, dims, _normalization(norm, True), True)


def _ihfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    x, dims = _one(_real_only("ihfft", self), n, dim)
    return aten.conj(aten._fft_r2c(x, dims, _normalization(norm, False), True))


def _to_real_1d(forward: bool) -> Callable[..., Tensor]:
    def transform(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
        x = _promoted(self, True)
        if not x.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        place = wrap_dim(dim, x.ndim)
        size = 2 * (x._a.shape[place] - 1) if n is None else n
        _check_size(size)
        x = _resized(x, [place], [size // 2 + 1])
        return aten._fft_c2r(aten.conj(x) if forward else x, [place], _normalization(norm, forward), size)

    return transform


ONE = "Tensor self, SymInt? n=None, int dim=-1, str? norm=None"
declare(f"fft_fft({ONE}) -> Tensor", composite=_complex_1d(True), where="n")
declare(f"fft_ifft({ONE}) -> Tensor", composite=_complex_1d(False), where="n")
declare(f"fft_rfft({ONE}) -> Tensor", composite=_rfft, where="n")
declare(f"fft_irfft({ONE}) -> Tensor", composite=_to_real_1d(False), where="n")
declare(f"fft_hfft({ONE}) -> Tensor", composite=_to_real_1d(True), where="n")
declare(f"fft_ihfft({ONE}) -> Tensor", composite=_ihfft, where="n")


# -- several dimensions ----------------------------------------------------------------------------------------------


def _complex_nd(forward: bool) -> Callable[..., Tensor]:
    def transform(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
        x = _promoted(self, True)
        dims, sizes = _several(x, s, dim)
        return aten._fft_c2c(_resized(x, dims, sizes), dims, _normalization(norm, forward), forward)

    return transform


def _rfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    x = _real_only("rfftn", self)
    dims, sizes = _several(x, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return aten._fft_r2c(_resized(x, dims, sizes), dims, _normalization(norm, True), True)


def _irfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    x = _promoted(self, True)
    dims, sizes = _several(x, s, dim)
    if not dims:
        raise RuntimeError("irfftn must transform at least one axis")
    last = 2 * (x._a.shape[dims[-1]] - 1) if sizes[-1] == -1 else sizes[-1]
    _check_size(last)
    x = _resized(x, dims, [*sizes[:-1], last // 2 + 1])
    return aten._fft_c2r(x, dims, _normalization(norm, False), last)


def _hfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """Of a signal that is Hermitian in its last dimension: the others are transformed first."""
    x = _promoted(self, True)
    dims, sizes = _several(x, s, dim)
    if not dims:
        raise RuntimeError("hfftn must transform at least one axis")
    last = 2 * (x._a.shape[dims[-1]] - 1) if sizes[-1] == -1 else sizes[-1]
    _check_size(last)
    x = _resized(x, dims, [*sizes[:-1], last // 2 + 1])
    normalization = _normalization(norm, True)
    if len(dims) > 1:
        x = aten._fft_c2c(x, dims[:-1], normalization, True)
    return aten._fft_c2r(aten.conj(x), [dims[-1]], normalization, last)


def _ihfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError("ihfftn expects a real-valued input tensor: Only supports floating-point dtypes, but found: "
                           f"{pretty(self.dtype)}")
    x = _promoted(self)
    dims, sizes = _several(x, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    normalization = _normalization(norm, False)
    made = aten._fft_r2c(_resized(x, dims, sizes), [dims[-1]], normalization, True)
    if len(dims) == 1:
        return aten.conj(made)
    return aten._fft_c2c(aten.conj_physical(made), dims[:-1], normalization, False)


MANY = "Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None"
PLANE = "Tensor self, SymInt[1]? s=None, int[1] dim=(-2, -1), str? norm=None"
for _name, _function in (("fftn", _complex_nd(True)), ("ifftn", _complex_nd(False)), ("rfftn", _rfftn),
                         ("irfftn", _irfftn), ("hfftn", _hfftn), ("ihfftn", _ihfftn)):
    declare(f"fft_{_name}({MANY}) -> Tensor", composite=_function, where="n")
    declare(f"fft_{_name[:-1]}2({PLANE}) -> Tensor", composite=_function, where="n")


# -- helpers ---------------------------------------------------------------------------------------------------------


def _shift(back: bool) -> Callable[..., Tensor]:
    def shift(self: Tensor, dim: Any) -> Tensor:
        dims = list(range(self.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        sizes = [self._a.shape[wrap_dim(d, self.ndim)] for d in dims]
        return aten.roll(self, [(size + 1) // 2 if back else size // 2 for size in sizes], dims)

    return shift


def _refuse_integers(name: str, dtype: DType | None) -> None:
    if dtype is not None and as_dtype(dtype, name).category < FLOAT:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")


def _fftfreq(n: int, d: float, dtype: DType | None, layout: Any, device: DeviceLike, pin_memory: bool | None) -> Tensor:
    _refuse_integers("fftfreq", dtype)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    positive = aten.arange(0, (n + 1) // 2, dtype=dtype or DefaultDtype.value, device=device)
    negative = aten.arange(-(n // 2), 0, dtype=dtype or DefaultDtype.value, device=device)
    return aten.cat([positive, negative]) * (1.0 / (n * d) if n * d else math.inf if n else 1.0)


def _rfftfreq(n: int, d: float, dtype: DType | None, layout: Any, device: DeviceLike,
              pin_memory: bool | None) -> Tensor:
    _refuse_integers("rfftfreq", dtype)
    return aten.arange(0, n // 2 + 1, dtype=dtype or DefaultDtype.value, device=device) * (
        1.0 / (n * d) if n * d else math.inf)


FREQUENCIES = ("int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None")
declare("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", composite=_shift(False), where="n")
declare("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", composite=_shift(True), where="n")
declare(f"fft_fftfreq({FREQUENCIES}) -> Tensor", composite=_fftfreq, where="n")
declare(f"fft_rfftfreq({FREQUENCIES}) -> Tensor", composite=_rfftfreq, where="n")

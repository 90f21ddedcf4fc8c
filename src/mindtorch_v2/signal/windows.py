"""`torch.signal.windows`: windows for spectra, of the family that SciPy has."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._device import DeviceLike
from .._dispatch.namespace import aten
from .._dtype import DefaultDtype, DType, as_dtype, float32, float64
from .._tensor import Tensor, strided

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
           "hann", "kaiser", "nuttall"]


def _options(name: str, M: int, dtype: DType | None, layout: Any, requires_grad: bool) -> dict[str, Any]:
    """What every window checks first, and the dtype it is made in."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    kind = DefaultDtype.value if dtype is None else as_dtype(dtype, name)
    if kind not in (float32, float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    return {"dtype": kind, "requires_grad": requires_grad}


def _line(start: float, end: float, M: int, options: dict[str, Any], device: DeviceLike) -> Tensor:
    return aten.linspace(start, end, M, device=device, **options)


def _empty(options: dict[str, Any], device: DeviceLike) -> Tensor:
    return aten.empty((0,), device=device, **options)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: DType | None = None,
                layout: Any = None, device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """Falls off exponentially on both sides of `center`, the middle if it is not given."""
    options = _options("exponential", M, dtype, layout, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _empty(options, device)
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    at = _line(-middle / tau, (-middle + (M - 1)) / tau, M, options, device)
    return aten.exp(aten.neg(aten.abs(at)))


def cosine(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
           requires_grad: bool = False) -> Tensor:
    """Half a wave of the sine."""
    options = _options("cosine", M, dtype, layout, requires_grad)
    if M == 0:
        return _empty(options, device)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return aten.sin(_line(0.5 * step, (0.5 + M - 1) * step, M, options, device))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: DType | None = None, layout: Any = None,
             device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """A bell of the given width."""
    options = _options("gaussian", M, dtype, layout, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _empty(options, device)
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    unit = 1 / (std * math.sqrt(2))
    return aten.exp(aten.neg(_line(start * unit, (start + (M - 1)) * unit, M, options, device) ** 2))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType | None = None, layout: Any = None,
           device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """Kaiser's window, by the Bessel function of order 0."""
    options = _options("kaiser", M, dtype, layout, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return _empty(options, device)
    if M == 1:
        return aten.ones((1,), device=device, **options)
    step = 2.0 * beta / (M if not sym else M - 1)
    at = _line(-beta, min(beta, -beta + (M - 1) * step), M, options, device)
    held = aten.sqrt(aten.clamp(beta * beta - at ** 2, min=0.0))
    return aten.special_i0(held) / aten.special_i0(aten.full((), beta, dtype=options["dtype"], device=device))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: DType | None = None, layout: Any = None,
                   device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """A sum of cosines with the weights `a`, of alternating sign."""
    options = _options("general_cosine", M, dtype, layout, requires_grad)
    if M == 0:
        return _empty(options, device)
    if M == 1:
        return aten.ones((1,), device=device, **options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [(-1) ** i * weight for i, weight in enumerate(a)]
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    step = 2 * math.pi / (M if not sym else M - 1)
    at = _line(0, (M - 1) * step, M, options, device)
    made = [weight * aten.cos(at * i) for i, weight in enumerate(weights)]
    return aten.sum(aten.stack(made), 0)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType | None = None, layout: Any = None,
                    device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """Hamming's window with another weight."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
            requires_grad: bool = False) -> Tensor:
    """Hamming's window."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
         requires_grad: bool = False) -> Tensor:
    """Hann's window."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
             requires_grad: bool = False) -> Tensor:
    """Blackman's window."""
    _options("blackman", M, dtype, layout, requires_grad)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
            requires_grad: bool = False) -> Tensor:
    """Nuttall's window of least sidelobes."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
             requires_grad: bool = False) -> Tensor:
    """A triangle."""
    options = _options("bartlett", M, dtype, layout, requires_grad)
    if M == 0:
        return _empty(options, device)
    if M == 1:
        return aten.ones((1,), device=device, **options)
    step = 2 / (M if not sym else M - 1)
    return 1 - aten.abs(_line(-1, -1 + (M - 1) * step, M, options, device))

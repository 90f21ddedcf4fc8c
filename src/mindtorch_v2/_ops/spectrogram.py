"""Windows, and the short-time Fourier transform that uses them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._backends.cpu.special_bessel import bessel_i
from .._device import DeviceLike
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import FLOAT, DefaultDtype, DType
from .._tensor import Tensor, strided, wrap
from .._warn import warn_once
from .create import OPTIONS, with_flags

# -- windows ---------------------------------------------------------------------------------------------------------


def _kaiser(position: Any, beta: float) -> Any:
    inside = np.sqrt(np.maximum(1.0 - (2.0 * position - 1.0) ** 2, 0.0))
    return bessel_i(beta * inside, 0) / bessel_i(np.array([beta]), 0)


# By the position from 0 to 1; further parameters with their defaults.
WINDOWS: dict[str, tuple[Callable[..., Any], dict[str, float]]] = {
    "bartlett": (lambda t: 1.0 - np.abs(2.0 * t - 1.0), {}),
    "blackman": (lambda t: 0.42 - 0.5 * np.cos(2 * math.pi * t) + 0.08 * np.cos(4 * math.pi * t), {}),
    "hamming": (lambda t, alpha, beta: alpha - beta * np.cos(2 * math.pi * t), {"alpha": 0.54, "beta": 0.46}),
    "hann": (lambda t: 0.5 - 0.5 * np.cos(2 * math.pi * t), {}),
    "kaiser": (_kaiser, {"beta": 12.0}),
}


def _declare_window(name: str, shape: Callable[..., Any], defaults: dict[str, float]) -> list[str]:
    """The overloads of a window's op: told nothing but its length, told whether it is periodic, told more and more."""

    def compute(window_length: int, periodic: bool, *rest: Any) -> Tensor:
        values, (dtype, layout, device, _) = rest[:-4], rest[-4:]
        kind = dtype or DefaultDtype.value
        if layout is not None and layout is not strided:
            raise RuntimeError(f"{name}_window is not implemented for sparse types, got: {layout}")
        if kind.category != FLOAT:
            raise RuntimeError(f"{name}_window expects floating point dtypes, got: {kind}")
        if window_length < 2:
            made = np.ones(window_length)
        else:
            # A periodic window is a symmetric one of one more point without the last.
            position = np.arange(window_length) / (window_length if periodic else window_length - 1)
            made = shape(position, *values)
        tensor = wrap(made.astype(kind.np))
        device = THREAD.state.default_device if device is None else device
        return tensor if device is None else aten.to(tensor, device)

    keys, known = list(defaults), list(defaults.values())
    declare(f"{name}_window(int window_length, *, {OPTIONS}) -> Tensor", where="n",
            composite=lambda window_length, *options: compute(window_length, True, *known, *options))
    names = [f"{name}_window__default"]
    for count in range(len(keys) + 1):
        overload = "beta" if name == "kaiser" and count else "_".join(("periodic", *keys[:count]))
        further = "".join(f"float {key}, " for key in keys[:count])
        declare(f"{name}_window.{overload}(int window_length, bool periodic, {further}*, {OPTIONS}) -> Tensor",
                where="n", composite=lambda window_length, periodic, *rest: compute(
                    window_length, periodic, *rest[:-4], *known[len(rest) - 4:], *rest[-4:]))
        names.append(f"{name}_window__{overload}")
    return names


def _make_window(name: str, shape: Callable[..., Any], defaults: dict[str, float]) -> None:
    overloads = _declare_window(name, shape, defaults)

    @choose(f"{name}_window", where="f")
    def window(window_length: int, periodic: bool | None = None, *given: float, dtype: DType | None = None,
               layout: Any = None, device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False,
               **named: float) -> Tensor:
        unknown = set(named) - set(defaults)
        if unknown or len(given) > len(defaults):
            raise TypeError(f"{name}_window() received an invalid combination of arguments - got unexpected "
                            f"{sorted(unknown) or given}, but expected one of its forms")
        if not isinstance(window_length, (int, np.integer)):
            raise TypeError(f"{name}_window(): argument 'window_length' (position 1) must be int, not "
                            f"{type(window_length).__name__}")
        if window_length < 0:
            raise RuntimeError(f"{name}_window requires non-negative window_length, got window_length={window_length}")
        values = list(given)
        for key, value in list(defaults.items())[len(given):]:
            if not named:
                break
            values.append(named.pop(key, value))
        if periodic is None and not values:
            made = getattr(aten, overloads[0])(window_length, dtype=dtype, layout=layout, device=device)
        else:
            made = getattr(aten, overloads[1 + len(values)])(window_length, periodic is not False, *values, dtype=dtype,
                                                             layout=layout, device=device)
        return with_flags(made, requires_grad, pin_memory=pin_memory)

    window.__name__ = window.__qualname__ = f"{name}_window"
    window.__doc__ = f"The {name} window, of which a periodic one can be repeated seamlessly."


for _name, (_shape, _defaults) in WINDOWS.items():
    _make_window(_name, _shape, _defaults)


# -- short-time Fourier transform ------------------------------------------------------------------------------------


NO_WINDOW = ("A window was not provided. A rectangular window will be applied,which is known to cause spectral "
             "leakage. Other windows are recommended, such as torch.hann_window.")
NO_WINDOW_BACK = ("A window was not provided. A rectangular window will be applied.Please provide the same window "
                  "used by stft to make the inversion lossless.")


def _wide_window(window: Any, n_fft: int, length: int, like: Tensor) -> Tensor:
    """A window of n_fft points, with zeros around a shorter one."""
    if window is None:
        kind = like.dtype.to_real()
        window = aten.ones((length,), dtype=kind, device=like.device)
    if length < n_fft:
        left = (n_fft - length) // 2
        window = aten.constant_pad_nd(window, (left, n_fft - length - left))
    return window


def _label(name: str, x: Tensor, **facts: Any) -> str:
    shown = ", ".join(f"{key}={value}" for key, value in facts.items())
    kind = x.type() if name == "stft" else f"CPU{x.type().removeprefix('torch.').removesuffix('Tensor')}Type"
    return f"{name}({kind}{list(x._a.shape)}, {shown})"


def _shown(window: Any) -> str:
    return "None" if window is None else f"{window.type()}{{{list(window._a.shape)}}}"


def _flag(value: bool | None) -> str:
    return "None" if value is None else str(int(value))


@choose("stft", where="fm")
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """The Fourier transforms of overlapping windows of a signal."""
    x = input
    complex_input = x.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not complex_input:
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further "
                               "require that return_complex=True in a future PyTorch release.")
        return_complex = True
    if not return_complex:
        warn_once("stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
                  "tensors for all inputs; use torch.view_as_real on the result.")
    if window is None:
        warn_once(NO_WINDOW)
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        pad = n_fft // 2
        lead = 3 - x.ndim
        wide = aten.view(x, (1,) * lead + tuple(x._a.shape)) if lead > 0 else x
        wide = aten.pad(wide, (pad, pad), pad_mode)
        x = aten.view(wide, tuple(wide._a.shape)[lead:]) if lead > 0 else wide
    return aten.stft__default(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex,
                              align_to_window)


def _stft(x: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None,
          normalized: bool, onesided: bool | None, return_complex: bool | None, align_to_window: bool | None) -> Tensor:
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    complex_input = x.dtype.is_complex or (window is not None and window.dtype.is_complex)
    label = _label("stft", x, n_fft=n_fft, hop_length=hop, win_length=length, window=_shown(window),
                   normalized=int(normalized), onesided=_flag(onesided), return_complex=_flag(return_complex),
                   align_to_window=_flag(align_to_window))
    if x.dtype.category < FLOAT:
        raise RuntimeError(f"{label} : expected a tensor of floating point or complex values")
    if x.ndim not in (1, 2):
        raise RuntimeError(f"{label} : expected a 1D or 2D tensor")
    single = x.ndim == 1
    x = aten.unsqueeze(x, 0) if single else x
    if align_to_window and length < n_fft:
        left = (n_fft - length) // 2
        x = aten.constant_pad_nd(x, (left, left))
    size = x._a.shape[1]
    if not 0 < n_fft <= size:
        raise RuntimeError(f"{label} : expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{label} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{label} : expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and (window.ndim != 1 or window._a.shape[0] != length):
        raise RuntimeError(f"{label} : expected a 1D window tensor of size equal to win_length={length}, but got "
                           f"window with size {list(window._a.shape)}")
    taper = _wide_window(window, n_fft, length, x)
    if onesided is None:
        onesided = not complex_input
    if onesided and complex_input:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    # Overlapping windows of the signal: sample, frame, point.
    lead, step = (s // x._a.itemsize for s in x._a.strides)
    frames = aten.as_strided(x, (x._a.shape[0], 1 + (size - n_fft) // hop, n_fft), (lead, hop * step, step))
    if window is not None or length < n_fft:
        frames = frames * taper
    norm = "ortho" if normalized else None
    made = aten.fft_rfft(frames, None, -1, norm) if onesided else aten.fft_fft(frames, None, -1, norm)
    made = aten.transpose_(made, 1, 2)
    made = aten.squeeze_(made, 0) if single else made
    return made if return_complex else aten.view_as_real(made)


declare("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
        "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
        composite=_stft, where="n")


@choose("istft", where="fm")
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:
    """The signal whose short-time Fourier transform this is, in the sense of least squares."""
    return aten.istft__default(input, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
                               return_complex)


def _istft(input: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None,
           center: bool, normalized: bool, onesided: bool | None, length: int | None, return_complex: bool) -> Tensor:
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        warn_once(NO_WINDOW_BACK)
    if not input.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")
    label = _label("istft", input, n_fft=n_fft, hop_length=hop, win_length=width, window=_shown(window),
                   center=int(center), normalized=int(normalized), onesided=_flag(onesided), length=length,
                   return_complex=int(return_complex))
    if input.ndim not in (2, 3):
        raise RuntimeError(f"{label} : expected a tensor with 2 or 3 dimensions, but got {input.ndim}")
    if not input._a.size:
        raise RuntimeError(f"{label} : input tensor cannot be empty.")
    single = input.ndim == 2
    x = aten.transpose(aten.unsqueeze(input, 0) if single else input, 1, 2)
    bins = x._a.shape[-1]
    if onesided is None:
        onesided = bins != n_fft
    expected = n_fft // 2 + 1 if onesided else n_fft
    if bins != expected:
        wanted = "n_fft / 2 + 1 when onesided=True" if onesided else "n_fft when onesided=False"
        raise RuntimeError(f"{label} : expected the frequency dimension (3rd to the last) of the input tensor to match "
                           f"{wanted}, but got {bins}")
    if not 0 < hop <= width:
        raise RuntimeError(f"{label} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{label} : expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window._a.shape[0] != width):
        raise RuntimeError(f"{label} : Invalid window shape. window has to be 1D and length of `win_length`")
    if window is not None and window.dtype.is_complex and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if onesided and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    taper = _wide_window(window, n_fft, width, x)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = aten.fft_ifft(x, None, -1, norm)
    else:
        half = aten.narrow(x, -1, 0, n_fft // 2 + 1)
        frames = aten.fft_irfft(half, n_fft, -1, norm)
    count = frames._a.shape[1]
    total = n_fft + hop * (count - 1)
    # Adding windows up where they overlap is the adjoint of cutting them out.
    signal = aten.unfold_backward(frames * taper, [frames._a.shape[0], total], 1, n_fft, hop)
    envelope = aten.unfold_backward(aten.expand(taper * taper, (1, count, n_fft)), [1, total], 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal = aten.slice(signal, 1, start, min(end, total), 1)
    envelope = aten.slice(envelope, 1, start, min(end, total), 1)
    if not bool(aten.all(aten.gt(aten.abs(envelope), 1e-11))):
        raise RuntimeError(f"{label} window overlap add min: 1")
    made = signal / envelope
    made = aten.squeeze__dim(made, 0) if single else made
    if end <= total:
        return made
    warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the "
                  "tail. Please check your center and hop_length settings.", UserWarning, stacklevel=2)
    return aten.constant_pad_nd(made, (0, end - total))


declare("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
        "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> "
        "Tensor", composite=_istft, where="n")

"""`torch.nn.functional.pad` and the ops behind it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from .._backends.cpu import padding as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor

declare(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", cpu=kernels.constant_pad_nd, where="f",
    grad={"self": lambda grad, pad: aten.constant_pad_nd(grad, [-p for p in pad], 0)},
)


def _mirrored(mode: str, spatial: int) -> None:
    name = f"{mode}_pad{spatial}d"

    def backward(grad: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
        return getattr(aten, f"{name}_backward")(grad, self, padding)

    def again(grad: Tensor, padding: Sequence[int]) -> Tensor:
        return getattr(aten, name)(grad, padding)

    node = f"{mode.capitalize()}Pad{spatial}DBackward"
    declare(f"{name}(Tensor self, int[{2 * spatial}] padding) -> Tensor", cpu=kernels.mirrored(mode, spatial),
            where="n", node=f"{node}0", grad={"self": backward})
    declare(f"{name}_backward(Tensor grad_output, Tensor self, int[{2 * spatial}] padding) -> Tensor",
            cpu=kernels.mirrored_backward(mode, spatial), where="n", node=f"{node}Backward0",
            grad={"grad_output": again, "self": lambda grad, self: aten.zeros_like(self)})


for _spatial in (1, 2, 3):
    _mirrored("reflection", _spatial)
    _mirrored("replication", _spatial)


def _pad_circular(self: Tensor, pad: Sequence[int]) -> Tensor:
    """The middle is copied in, then every margin from the opposite end of what is already there."""
    shape = list(self._a.shape)
    spatial = len(pad) // 2
    ndim = len(shape)
    if spatial + 2 != ndim and spatial + 1 != ndim:
        raise RuntimeError(f"Invalid padding size, expected 1 to {ndim - 1} spatial dimensions but got {spatial}")
    whole, middle, kept = list(shape), [slice(None)] * ndim, [slice(None)] * ndim
    for k in range(spatial):
        before, after = pad[2 * k], pad[2 * k + 1]
        dim = ndim - 1 - k
        extent = shape[dim]
        if before > extent or after > extent:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if extent + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        whole[dim] = extent + before + after
        middle[dim] = slice(max(before, 0), whole[dim] - max(after, 0))
        kept[dim] = slice(max(-before, 0), extent - max(-after, 0))
    made = aten.new_empty(self, tuple(whole))
    aten.copy_(_window(made, middle), _window(self, kept))
    for k in range(spatial):
        before, after = pad[2 * k], pad[2 * k + 1]
        dim = ndim - 1 - k
        end = whole[dim]
        if before > 0:
            source = aten.slice(made, dim, end - before - max(after, 0), end - max(after, 0), 1)
            aten.copy_(aten.slice(made, dim, 0, before, 1), source)
        if after > 0:
            source = aten.slice(made, dim, max(before, 0), max(before, 0) + after, 1)
            aten.copy_(aten.slice(made, dim, end - after, end, 1), source)
    return made


def _window(tensor: Tensor, key: Sequence[slice]) -> Tensor:
    for dim, part in enumerate(key):
        if part.start is not None:
            tensor = aten.slice(tensor, dim, part.start, part.stop, 1)
    return tensor


declare("_pad_circular(Tensor self, int[] pad) -> Tensor", composite=_pad_circular, where="n")
MODES = {"reflect": "reflection_pad", "replicate": "replication_pad"}


def _pad(self: Tensor, pad: Sequence[int], mode: str, value: float | None) -> Tensor:
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * self.ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got "
                           f"padding length {len(pad)} and input of dimension {self.ndim}")
    if mode == "constant":
        if value is not None and self._a.dtype.kind == "u":
            value = float(value)  # the parameter is one, and a float below zero does not wrap around
        return aten.constant_pad_nd(self, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    spatial = len(pad) // 2
    known = mode in ("reflect", "replicate", "circular")
    if known and spatial in (1, 2, 3) and self.ndim in (spatial + 1, spatial + 2):
        if mode == "circular":
            return aten._pad_circular(self, pad)
        return getattr(aten, f"{MODES[mode]}{spatial}d")(self, pad)
    if not known:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    raise NotImplementedError(f"Padding size {len(pad)} is not supported for {self.ndim}D input tensor.")


declare('pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor', composite=_pad, where="n")


@choose("pad", where="n")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Margins around the last dimensions: (before, after) pairs, the last dimension first."""
    if not isinstance(pad, (list, tuple)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    try:
        sizes = [index(size) for size in pad]
    except TypeError:
        at, kind = next((at, type(size).__name__) for at, size in enumerate(pad) if not _counts(size))
        raise TypeError("pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                        f"{kind} at pos {at}") from None
    if isinstance(value, (complex, str)):
        raise TypeError(f"pad(): argument 'value' (position 4) must be float, not {type(value).__name__}")
    return aten.pad__default(input, sizes, mode, value)


def _counts(size: Any) -> bool:
    try:
        index(size)
    except TypeError:
        return False
    return True

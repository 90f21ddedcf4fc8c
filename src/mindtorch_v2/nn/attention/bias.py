"""`torch.nn.attention.bias`: causal masks as tensors that say which kind they are."""

from __future__ import annotations

import enum
import warnings
from typing import Any

from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import bool_
from ..._tensor import DISABLED, Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the score matrix the diagonal begins or ends in."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask of what each query may see: itself and what came before. Attention takes it as `attn_mask`.

    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls: Any, variant: Any, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        made = aten.tril(aten.ones((seq_len_q, seq_len_kv), dtype=bool_), shift).as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __init__(self, variant: Any, seq_len_q: int, seq_len_kv: int) -> None:
        pass

    __torch_function__ = DISABLED  # type: ignore[assignment]  # what is made of a mask is a plain tensor

    def _materialize(self, device: DeviceLike = None) -> Tensor:
        """The mask as a plain tensor."""
        plain: Tensor = self.as_subclass(Tensor)
        return plain if device is None else aten.to(plain, device)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def _two(name: str, size: tuple[int, ...]) -> tuple[int, ...]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors, got sizes {size}")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """Query i sees keys 0 to i."""
    rows, columns = _two("causal_upper_left", size)
    return CausalBias(CausalVariant.UPPER_LEFT, rows, columns)


def causal_lower_right(*size: int) -> CausalBias:
    """The last query sees all keys, the one before all but the last, and so on."""
    rows, columns = _two("causal_lower_right", size)
    if rows > columns:
        warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                      stacklevel=2)
    return CausalBias(CausalVariant.LOWER_RIGHT, rows, columns)

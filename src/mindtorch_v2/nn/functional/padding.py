"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from ..._dispatch.namespace import aten
from ..._tensor import Tensor


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add elements at both ends of the last dimensions: `pad` is `(left, right, top, bottom, ...)`.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.functional.pad(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    return aten.pad(input, pad, mode, value)

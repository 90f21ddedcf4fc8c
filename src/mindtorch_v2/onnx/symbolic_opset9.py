"""`torch.onnx.symbolic_opset9`: arithmetic of its own; the exporter around it is not here."""

from __future__ import annotations

from collections.abc import Sequence

from .._absent import refusing

_REASON = ("torch.onnx.symbolic_opset9.{0}: exporting needs a traced graph of the model, which this runtime does not "
           "make")
masked_fill = refusing("masked_fill", NotImplementedError, _REASON.format("masked_fill"))
softmax = refusing("softmax", NotImplementedError, _REASON.format("softmax"))


def _prepare_onnx_paddings(dim: int, pad: Sequence[int]) -> list[int]:
    """Paddings as ONNX has them: first those before each dimension, then those behind.

    `pad` has them in pairs, from the last dimension on.

    >>> _prepare_onnx_paddings(3, [1, 2, 3, 4])
    [0, 3, 1, 0, 4, 2]
    """
    pairs = [*pad, *[0] * (2 * dim - len(pad))]
    return [*pairs[0::2][::-1], *pairs[1::2][::-1]]

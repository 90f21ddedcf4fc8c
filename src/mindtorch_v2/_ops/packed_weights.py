"""Products with weights of 4 and 8 bits."""

from __future__ import annotations

from .._backends.cpu import packed_weights as kernels
from .._dispatch.registry import declare

declare("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", cpu=kernels.int8_mm, where="f")
declare("_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor", cpu=kernels.pack_int4, where="f")
declare("_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
        cpu=kernels.int4_mm, where="f")

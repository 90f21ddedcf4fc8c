"""`torch.fx.passes.shape_prop`: what tensors pass through a graph, noted on its nodes."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ..._dtype import dtype
from ..._memory_format import MemoryFormat, channels_last, channels_last_3d, contiguous_format
from ..._shape import Size
from ..._tensor import Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The facts about a tensor, without its values."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: MemoryFormat | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The facts about a tensor."""
    layout = None
    if include_contiguity:
        layout = next((one for one in (contiguous_format, channels_last, channels_last_3d)
                       if result.is_contiguous(memory_format=one)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and notes on each node the type of its value, in `meta["type"]`, and of its tensors, in
    `meta["tensor_meta"]`."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError("ShapeProp: this runtime has no fake tensors; give it tensors on 'meta'")

    def run_node(self, n: Node) -> Any:
        """Run one node."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def noted(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        known = map_aggregate(result, noted)
        if found:
            n.meta["tensor_meta"] = known
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these arguments."""
        return super().run(*args)

"""`torch._dynamo._trace_wrapped_higher_order_op`: indexing with tensors inside a function that is batched."""

from __future__ import annotations

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A context in which `x[i]` may be batched over `i`. Indexing with tensors here is an op that batches anyway."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

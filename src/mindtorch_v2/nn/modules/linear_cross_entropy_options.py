"""Options of `linear_cross_entropy`: how many samples' scores are in memory at a time."""

from __future__ import annotations

import dataclasses

from ..._dtype import bfloat16, dtype, float16, float32, float64

__all__ = ["LinearCrossEntropyOptions"]

AUTO = "auto"
POLICIES = (AUTO, "accurate", "balanced", "compact")
NARROW = (float16, bfloat16)


def _parts_of(method: str) -> int:
    """The divisor in `aspect_ratio:2`, 1 if there is none, 0 for other methods."""
    name, colon, factor = method.partition(":")
    if name != "aspect_ratio":
        return 0
    return (int(factor) if factor.isdigit() else 0) if colon else 1


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """The scores are computed for some samples at a time, and again in backward, instead of all being kept.

    `acc_dtype` is what narrow floats are computed in. `acc_policy` and `allow_retain_graph` choose between buffers of
    PyTorch's; there are none here, so that backward may always run again.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = AUTO
    acc_policy: str = AUTO
    acc_dtype: dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, AUTO) and not _parts_of(str(self.chunking_method)):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, float16, bfloat16, float32, float64):
            raise ValueError("acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, "
                             f"torch.float64}}, got {self.acc_dtype!r}")

    def rows_at_a_time(self, rows: int, features: int, classes: int) -> int:
        """How many samples are computed together."""
        method = self.chunking_method
        if method == AUTO:
            method = "aspect_ratio:2" if self.batch_chunk_size is None else None
        if method is None:
            return max(1, min(self.batch_chunk_size or rows, rows))
        wanted = -(-rows // -(-classes // features))  # as many scores as the input has numbers
        chosen = min((1 << (wanted - 1).bit_length()) // _parts_of(method), rows)
        if self.batch_chunk_size not in (None, chosen):
            raise ValueError(f"batch_chunk_size (={self.batch_chunk_size}) and chunking_method ('{method}') give "
                             f"different chunk sizes ({self.batch_chunk_size} vs {chosen}); pass only one.")
        return max(1, chosen)

    def computed_in(self, given: dtype) -> dtype:
        """The dtype of the scores."""
        if self.acc_dtype is not None:
            return self.acc_dtype
        return float32 if self.acc_policy == AUTO and given in NARROW else given

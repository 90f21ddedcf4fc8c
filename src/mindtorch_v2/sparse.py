"""`torch.sparse`: functions of tensors in coordinate form. Compressed layouts are not supported."""

from __future__ import annotations

from typing import Any

from ._absent import refusing
from ._backends.sparse import SparseArray
from ._construct import as_tensor
from ._dispatch.namespace import aten
from ._dtype import dtype, float32, float64, int32, int64
from ._tensor import Tensor

__all__ = ["addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm",
           "softmax", "solve", "spdiags", "spsolve", "sum", "to_sparse_semi_structured"]

_REASON = "torch.sparse.{0} is not supported by this runtime, which has only the basic sparse functions; use to_dense()"
as_sparse_gradcheck = refusing("as_sparse_gradcheck", NotImplementedError, _REASON)
log_softmax = refusing("log_softmax", NotImplementedError, _REASON)
sampled_addmm = refusing("sampled_addmm", NotImplementedError, _REASON)
softmax = refusing("softmax", NotImplementedError, _REASON)
solve = refusing("solve", NotImplementedError, _REASON)
spdiags = refusing("spdiags", NotImplementedError, _REASON)
spsolve = refusing("spsolve", NotImplementedError, _REASON)
to_sparse_semi_structured = refusing("to_sparse_semi_structured", NotImplementedError, _REASON)


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse and a dense matrix."""
    if reduce != "sum":
        raise NotImplementedError("torch.sparse.mm: reductions other than 'sum' are not supported")
    if isinstance(mat2._a, SparseArray) and not isinstance(mat1._a, SparseArray):
        return aten.t(aten._sparse_mm(aten.t(mat2), aten.t(mat1)))
    return aten._sparse_mm(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta * mat + alpha * mat1 @ mat2` with a sparse `mat1`."""
    return aten.add(aten.mul(mat, beta) if beta != 1 else mat, aten._sparse_mm(mat1, mat2), alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: dtype | None = None) -> Tensor:
    """The sum of all elements, or over some dimensions: sparse, unless all sparse dimensions are summed."""
    if dtype is not None:
        input = aten.to(input, dtype)
    together = aten.coalesce(input) if not input.is_coalesced() else input
    if dim is None:
        return aten.sum(together.values())
    over = {d % input.dim() for d in ((dim,) if isinstance(dim, int) else dim)}
    sparse = input.sparse_dim()
    held = together.values()
    inner = [d - sparse + 1 for d in over if d >= sparse]
    if inner:
        held = aten.sum(held, inner)
    kept = [d for d in range(sparse) if d not in over]
    if not kept:
        return aten.sum(held, 0)
    shape = [n for d, n in enumerate(input.shape) if d not in over]
    rows = aten.stack([together.indices()[d] for d in kept])
    made: Tensor = aten.sparse_coo_tensor(rows, held, shape).coalesce()
    return made


class check_sparse_tensor_invariants:
    """Whether new sparse tensors are checked: they always are, so that this changes nothing."""

    def __init__(self, enable: bool = True) -> None:
        self.enabled = enable

    @staticmethod
    def is_enabled() -> bool:
        """True."""
        return True

    @staticmethod
    def enable() -> None:
        """Nothing to do."""

    @staticmethod
    def disable() -> None:
        """Nothing to do: the checks stay."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def _legacy(kind: dtype) -> Any:
    def construct(indices: Any, values: Any, size: Any = None) -> Tensor:
        """A sparse tensor, by the old constructor."""
        return aten.sparse_coo_tensor(as_tensor(indices), aten.to(as_tensor(values), kind), size)

    return construct


FloatTensor, DoubleTensor = _legacy(float32), _legacy(float64)
IntTensor, LongTensor = _legacy(int32), _legacy(int64)

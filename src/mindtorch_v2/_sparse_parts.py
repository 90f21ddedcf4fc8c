"""Sparse tensors as the tensors they are made of: how they go into files and to other processes."""

from __future__ import annotations

from typing import Any

from . import _tensor
from ._dispatch.namespace import aten
from ._tensor import Tensor, wrap_as


def sparse_parts(tensor: Any) -> tuple[Any, ...]:
    """The parts of a sparse tensor, in the order of files."""
    if tensor.is_sparse:
        return (tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())
    if str(tensor.layout) in ("torch.sparse_csr", "torch.sparse_bsr"):
        return (tensor.crow_indices(), tensor.col_indices(), tensor.values(), tensor.shape)
    return (tensor.ccol_indices(), tensor.row_indices(), tensor.values(), tensor.shape)


def reduce_sparse(tensor: Tensor) -> Any:
    """The reduction of a sparse tensor for pickle."""
    plain = tensor.detach()
    return rebuild_sparse, (type(tensor), str(tensor.layout), sparse_parts(plain), tensor._rg, tensor.__dict__)


def rebuild_sparse(cls: type, layout: str, parts: tuple[Any, ...], requires_grad: bool,
                   attributes: dict[str, Any]) -> Tensor:
    """Rebuild a pickled sparse tensor."""
    if layout == "torch.sparse_coo":
        indices, values, size, is_coalesced = parts
        made = aten.sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced)
    else:
        made = aten.sparse_compressed_tensor(*parts, layout=getattr(_tensor, layout.removeprefix("torch.")))
    kept = made if cls is Tensor else wrap_as(cls, made._a)
    kept._rg = requires_grad
    kept.__dict__.update(attributes)
    return kept

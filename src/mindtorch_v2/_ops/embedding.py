"""Embedding tables."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import embedding as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor


def _embedding_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool,
                        sparse: bool) -> Tensor:
    if sparse:
        return aten.embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
    return aten.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def _sparse_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int,
                     scale_grad_by_freq: bool) -> Tensor:
    """The rows of the gradient with the places they belong to, which may repeat; those of the padding are left out."""
    if grad.device.type not in ("cpu", "meta"):
        raise NotImplementedError(f"aten::embedding_sparse_backward: there are no sparse tensors on {grad.device}, so "
                                  "that nn.Embedding and nn.EmbeddingBag need sparse=False there")
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    if padding_idx != -1:
        kept = aten.ne(indices, padding_idx)
        indices, grad = indices[kept], grad[kept]
    features = grad._a.shape[-1]
    return aten._sparse_coo_tensor_with_dims_and_tensors(
        1, 1, (num_weights, features), aten.reshape(indices, (1, -1)), aten.reshape(grad, (indices._a.size, features)))


def _dense_backward_gradient(grad: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Each occurrence sees its row of the second gradient; occurrences of the padding row see nothing."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: gradients of second order are not supported with scale_grad_by_freq")
    seen = aten.embedding(grad, indices)
    if padding_idx < 0:
        return seen
    return aten.masked_fill(seen, aten.unsqueeze(aten.eq(indices, padding_idx), -1), 0)


def _no_renorm_gradient(grad: Tensor) -> Any:
    raise NotImplementedError("the derivative for 'embedding_renorm' is not implemented.")


declare(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> "
    "Tensor", cpu=kernels.embedding, where="f",
    grad={"weight": lambda grad, indices, weight_shape, padding_idx, scale_grad_by_freq, sparse: (
        aten.embedding_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq, sparse))},
)
declare("embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq, "
        "bool sparse) -> Tensor", composite=_embedding_backward, where="n")
declare(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, "
    "bool scale_grad_by_freq) -> Tensor", cpu=kernels.embedding_backward, where="n",
    grad={"grad_output": _dense_backward_gradient},
)
declare("embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, "
        "bool scale_grad_by_freq) -> Tensor", composite=_sparse_backward, where="n")
declare("embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
        cpu_inplace=kernels.embedding_renorm, where="n", grad={"self": lambda grad: _no_renorm_gradient(grad)})


@choose("embedding_renorm_", where="f")
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Any:
    """Shrink, in place, the rows at `indices` that are longer than `max_norm`."""
    return aten.embedding_renorm___default(input, indices, max_norm, norm_type)

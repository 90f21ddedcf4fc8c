"""Bags of embeddings: rows of a table, summed up, averaged, or the largest of them."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import embedding_bag as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor

BAG = ("Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
       "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1")


def _weight_gradient(grad: Tensor, indices: Tensor, offsets: Tensor, result1: Tensor, result2: Tensor, result3: Tensor,
                     weight_shape: Any, scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Any,
                     padding_idx: int) -> Tensor:
    return aten._embedding_bag_backward(grad, indices, offsets, result1, result2, result3, weight_shape[0],
                                        scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx)


def _no_second_gradient(grad: Tensor) -> Any:
    raise NotImplementedError("the derivative for '_embedding_bag_dense_backward' is not implemented.")


declare(
    f"_embedding_bag({BAG}) -> (Tensor, Tensor, Tensor, Tensor)", cpu=kernels.embedding_bag, where="f",
    differentiable=(0,),
    grad={
        "weight": _weight_gradient,
        "per_sample_weights": lambda grad, weight, indices, offsets, result1, mode, padding_idx: (
            aten._embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, result1, mode,
                                                            padding_idx)),
    },
)
declare(f"_embedding_bag_forward_only({BAG}) -> (Tensor, Tensor, Tensor, Tensor)", cpu=kernels.embedding_bag, where="f")


def _backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor,
              maximum_indices: Tensor, num_weights: int, scale_grad_by_freq: bool, mode: int, sparse: bool,
              per_sample_weights: Any, padding_idx: int) -> Tensor:
    if sparse:
        return aten._embedding_bag_sparse_backward(grad, indices, offsets, offset2bag, bag_size, num_weights,
                                                   scale_grad_by_freq, mode, per_sample_weights, padding_idx)
    return aten._embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
                                              scale_grad_by_freq, mode, per_sample_weights, padding_idx)


def _sparse_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor,
                     num_weights: int, scale_grad_by_freq: bool, mode: int, per_sample_weights: Any,
                     padding_idx: int) -> Tensor:
    """Each index sees the gradient of its bag, shared out if the bag is averaged."""
    each = aten.index_select(grad, 0, offset2bag)
    if mode == kernels.MEAN:
        each = aten.div(each, aten.unsqueeze(aten.index_select(bag_size, 0, offset2bag), 1))
    if per_sample_weights is not None:
        each = aten.mul(each, aten.unsqueeze(per_sample_weights, 1))
    return aten.embedding_backward(each, indices, num_weights, padding_idx, scale_grad_by_freq, True)


declare("_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
        "Tensor bag_size, int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
        "int padding_idx=-1) -> Tensor", composite=_sparse_backward, where="n")
declare("_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
        "Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, bool sparse, "
        "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor", composite=_backward, where="n")
declare("_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, "
        "Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
        "int padding_idx=-1) -> Tensor", cpu=kernels.dense_backward, where="n",
        grad={("grad", "per_sample_weights"): lambda grad: _no_second_gradient(grad)})
declare("_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, "
        "Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor", cpu=kernels.per_sample_weights_backward,
        where="n", grad={("grad", "weight"): lambda grad: _no_second_gradient(grad)})


def _bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
         per_sample_weights: Tensor | None, include_last_offset: bool, padding_idx: int | None) -> Any:
    if padding_idx is not None:
        rows = weight._a.shape[0]
        if not -rows <= padding_idx < rows:
            raise RuntimeError(f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but "
                               f"got {padding_idx}")
        padding_idx %= rows
    wants_gradient = weight.requires_grad or (per_sample_weights is not None and per_sample_weights.requires_grad)
    form = aten._embedding_bag if wants_gradient else aten._embedding_bag_forward_only
    return form(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
                -1 if padding_idx is None else padding_idx)


declare("embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, "
        "bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> "
        "(Tensor, Tensor, Tensor, Tensor)", composite=_bag, where="n")


@choose("embedding_bag", where="f")
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
                  sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Any:
    """`(result, bag of every index, size of every bag, where maxima came from)`."""
    return aten.embedding_bag__padding_idx(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                                           per_sample_weights, include_last_offset, padding_idx)

"""Collectives that gradients flow through: the backward of each is a collective too, which all ranks run."""

from __future__ import annotations

from typing import Any

from ..._autograd.function import Function
from ..._dispatch.namespace import aten
from ..._outside import attributes
from ..._tensor import Tensor
from .. import _collectives as collectives
from .._groups import ProcessGroup, resolve
from .._groups import group as _group
from .._reduction import ReduceOp

__all__ = ["_all_gather_base", "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather",
           "reduce", "reduce_scatter", "scatter"]


class _AllReduce(Function):
    """The gradient of a sum over ranks is the sum of the gradients."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        made = aten.clone(tensor)
        collectives.all_reduce(made, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _AllGather(Function):
    """The gradient of what was gathered goes back to where it came from."""

    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        made = [aten.empty_like(tensor) for _ in range(resolve(group).size())]  # type: ignore[union-attr]
        collectives.all_gather(made, aten.contiguous(tensor), group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        made = aten.empty_like(grads[0])
        collectives.reduce_scatter(made, [aten.contiguous(grad) for grad in grads], group=ctx.group)
        return None, made


class _Broadcast(Function):
    """The gradient of the one that was sent is the sum of all."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        made = aten.clone(tensor)
        collectives.broadcast(made, src, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        members = resolve(ctx.group)
        made = aten.clone(grad)
        collectives.reduce(made, ctx.src, group=members)
        is_source = members is not None and members.global_rank(members.rank()) == ctx.src
        return None, None, made if is_source else aten.zeros_like(made)


class _Gather(Function):
    """The gradient of each piece goes back to the rank that it came from."""

    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        made = [aten.zeros_like(tensor) for _ in range(_size(group))]
        collectives.gather(aten.contiguous(tensor), made if _is(dst, group) else None, dst, group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    """The gradients of all pieces go back to the rank that sent them."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        made = aten.zeros_like(tensors[0])
        pieces = [aten.contiguous(one) for one in tensors] if _is(src, group) else None
        collectives.scatter(made, pieces, src, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _Reduce(Function):
    """Every rank's tensor has the gradient of the sum."""

    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        made = aten.clone(tensor)
        collectives.reduce(made, dst, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _ReduceScatter(Function):
    """The gradient of each part goes back to all ranks."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        made = aten.empty_like(output)
        collectives.reduce_scatter(made, [aten.contiguous(one) for one in tensors], op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _AllGatherBase(Function):
    """The gradient of what was gathered goes back to where it came from."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, group: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.shape = group, tensor.shape
        made = aten.empty_like(output)
        collectives.all_gather_into_tensor(made, aten.contiguous(tensor), group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        made = aten.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        collectives.reduce_scatter_tensor(made, aten.contiguous(grad), group=ctx.group)
        return None, None, made


class _AllToAll(Function):
    """Gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, group: Any, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        outputs, inputs = tensors[:count], tensors[count:]
        ctx.group, ctx.count, ctx.inputs = group, count, [aten.empty_like(one) for one in inputs]
        made = [aten.empty_like(one) for one in outputs]
        collectives.all_to_all(made, [aten.contiguous(one) for one in inputs], group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        back = _AllToAll.apply(ctx.group, len(ctx.inputs), *ctx.inputs, *grads)
        return (None,) * (2 + ctx.count) + back


class _AllToAllSingle(Function):
    """Gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, received: Any, sent: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.shape, ctx.received, ctx.sent = group, tensor.shape, received, sent
        made = aten.empty_like(output)
        collectives.all_to_all_single(made, aten.contiguous(tensor), received, sent, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        target = aten.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, target, ctx.sent, ctx.received, grad)


def _members(group: Any) -> ProcessGroup:
    members = resolve(group)
    if members is None:
        raise ValueError("this process is not in the group of the collective")
    return members


def _size(group: Any) -> int:
    return _members(group).size()


def _is(rank: int, group: Any) -> bool:
    """Whether this process is that rank."""
    members = _members(group)
    return members.global_rank(members.rank()) == rank


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum over all ranks, as a new tensor."""
    return _AllReduce.apply(op, group, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks."""
    return _AllGather.apply(group, tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of one rank, as a new tensor."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on one of them; zeros on the others."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This rank's tensor of those that a rank has; the other ranks give tensors of the same sizes."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum over all ranks on one of them; the others get their own."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """This rank's part of the sum over all ranks, like `output`, which is not written."""
    return _ReduceScatter.apply(op, group, output, *input_list)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """The tensors of all ranks in one, like `output_tensor`, which is not written."""
    return _AllGatherBase.apply(output_tensor, group, input_tensor)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None) -> tuple[Tensor, ...]:
    """A tensor from every rank, like those of `output_tensor_list`, which are not written."""
    return _AllToAll.apply(group, len(output_tensor_list), *output_tensor_list, *input_tensor_list)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None, group: Any = None) -> Tensor:
    """Rows of every rank's tensor, like `output`, which is not written."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


group = _group

__getattr__ = attributes("distributed.nn.functional", globals())

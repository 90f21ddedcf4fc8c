"""Collectives that gradients flow through: the backward of each is a collective too, which all ranks run."""

from __future__ import annotations

from typing import Any

from ..._autograd.function import Function
from ..._dispatch.namespace import aten
from ..._outside import attributes
from ..._tensor import Tensor
from .. import _collectives as collectives
from .._groups import group as _group
from .._groups import resolve
from .._reduction import ReduceOp

__all__ = ["all_gather", "all_reduce", "broadcast"]


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


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum over all ranks, as a new tensor."""
    return _AllReduce.apply(op, group, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks."""
    return _AllGather.apply(group, tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of one rank, as a new tensor."""
    return _Broadcast.apply(src, group, tensor)


group = _group

__getattr__ = attributes("distributed.nn.functional", globals())

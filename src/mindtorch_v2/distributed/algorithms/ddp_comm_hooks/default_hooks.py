"""Communication hooks: the plain average, and sums that travel in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dtype import bfloat16, float16
from ...._tensor import Tensor
from ....futures import Future
from ..._collectives import all_reduce
from ..._groups import resolve

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]

Hook = Callable[[Any, Any], Future[Tensor]]


def _averaged(tensor: Tensor, group: Any) -> Future[Any]:
    members = resolve(group)
    if members is None:
        raise ValueError("this process is not in the group of the communication hook")
    tensor.div_(members.size())
    work = all_reduce(tensor, group=members, async_op=True)
    if work is None:
        raise ValueError("this process is not in the group of the communication hook")
    return work.get_future()


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The average, as without a hook."""
    return _averaged(bucket.buffer(), process_group).then(lambda done: done.value()[0])


def _compressed(process_group: Any, bucket: Any, dtype: Any) -> Future[Tensor]:
    whole = bucket.buffer()
    return _averaged(whole.to(dtype), process_group).then(lambda done: whole.copy_(done.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The average, sent as float16."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The average, sent as bfloat16."""
    return _compressed(process_group, bucket, bfloat16)


def _wrapped(hook: Hook, dtype: Any) -> Hook:
    def compressing(state: Any, bucket: Any) -> Future[Tensor]:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(dtype))

        def back(done: Future[Any]) -> Tensor:
            bucket.set_buffer(whole)
            value = done.value()
            return whole.copy_(value[0] if isinstance(value, list) else value)

        return hook(state, bucket).then(back)

    return compressing


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook whose buckets travel as float16."""
    return _wrapped(hook, float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook whose buckets travel as bfloat16."""
    return _wrapped(hook, bfloat16)

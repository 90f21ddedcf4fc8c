"""`torch.distributed.distributed_c10d`: where libraries import the functions of `torch.distributed` from."""

from __future__ import annotations

from .._outside import attributes
from . import _collectives, _lifecycle, _messages, _objects
from ._bucket import BuiltinCommHookType, GradBucket
from ._collectives import *  # noqa: F403
from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from ._groups import Backend, GroupMember, ProcessGroup, default_group, group
from ._lifecycle import *  # noqa: F403
from ._messages import *  # noqa: F403
from ._objects import *  # noqa: F403
from ._reduction import ReduceOp, premul_sum, supports_complex
from ._work import Work
from .constants import default_pg_timeout

__all__ = [*_collectives.__all__, *_lifecycle.__all__, *_messages.__all__, *_objects.__all__,
           "Backend", "BuiltinCommHookType", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError",
           "GradBucket", "GroupMember", "ProcessGroup", "ReduceOp", "Work", "default_pg_timeout", "group", "reduce_op",
           "supports_complex"]

_get_default_group = default_group
_make_nccl_premul_sum = premul_sum
reduce_op = ReduceOp  # the name that it had first

__getattr__ = attributes("distributed.distributed_c10d", globals())

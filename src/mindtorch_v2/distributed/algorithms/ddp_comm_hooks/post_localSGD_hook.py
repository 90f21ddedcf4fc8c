"""Post-local SGD (arXiv:1808.07217): after some steps, gradients are averaged within small groups or not at all.

`PeriodicModelAverager` averages the parameters of all ranks now and then.
"""

from __future__ import annotations

from typing import Any

from ...._tensor import Tensor
from ....futures import Future
from ..._lifecycle import new_subgroups
from .debugging_hooks import noop_hook
from .default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """When to begin, and with which ranks to average from then on: by default those of this machine."""

    def __init__(self, process_group: Any, subgroup: Any, start_localSGD_iter: int,
                 post_local_gradient_allreduce: bool = True) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future[Tensor]:
    """The average over all ranks, and after `start_localSGD_iter` steps over those of the small group."""
    is_local = state.iter >= state.start_localSGD_iter
    if bucket.is_last():
        state.iter += 1
    if not is_local:
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)

"""PowerSGD (arXiv:1905.13727): gradients travel as products of two thin matrices.

A gradient M becomes P Q^T with few columns: P = M Q is summed over the ranks and its columns made orthonormal, then
Q = M^T P is averaged. What is lost on a rank is added to its next gradient (error feedback), and Q is the start of the
next step (warm start). The sums are taken one after the other inside the backward, without overlap: each needs the
result of the one before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._autograd.grad_mode import no_grad
from ...._dispatch.namespace import aten
from ...._dtype import bfloat16, float16
from ...._random import manual_seed
from ...._tensor import Tensor
from ....futures import Future
from ....random import fork_rng
from ..._collectives import all_reduce
from ..._groups import ProcessGroup, resolve
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What the hook keeps between steps, and how strongly it compresses.

    `compression_stats_logging_frequency` and `batch_tensors_with_same_shape` change nothing: no statistics are
    logged, and tensors are compressed one by one.
    """

    def __init__(self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
                 min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
                 orthogonalization_epsilon: float = 0, random_seed: int = 0,
                 compression_stats_logging_frequency: int = 10000, batch_tensors_with_same_shape: bool = False) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError("Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled: "
                             "PowerSGD can only be applied after the first two iterations in DDP.")
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.p_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = compression_stats_logging_frequency
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        """Without the group, which belongs to the running job."""
        return {name: value for name, value in self.__dict__.items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """On the default group."""
        self.process_group = None
        self.__dict__.update(state)

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer elements travelled, how many there were, and how many travelled."""
        after = self.total_numel_after_compression
        return (self.total_numel_before_compression / after if after else 0, self.total_numel_before_compression, after)


def _orthonormal(matrix: Tensor, epsilon: float) -> Tensor:
    """The columns, made orthonormal. With an epsilon one by one, so that columns of zeros stay finite."""
    if matrix.dtype in (float16, bfloat16):
        return _orthonormal(matrix.float(), epsilon).to(matrix.dtype)
    if epsilon == 0:
        return aten.linalg_qr(matrix)[0]
    columns: list[Tensor] = []
    for column in matrix.unbind(1):
        for before in columns:
            column = column - aten.mul(before, aten.sum(before * column))
        columns.append(column / (aten.linalg_vector_norm(column) + epsilon))
    return aten.stack(columns, 1)


def _sum(tensors: list[Tensor], group: ProcessGroup) -> list[Tensor]:
    """The sums over all ranks, in one message."""
    flat = aten.cat([one.reshape(-1) for one in tensors])
    all_reduce(flat, group=group)
    return [part.view(one.shape) for part, one in zip(aten.split(flat, [one.numel() for one in tensors]), tensors)]


def _compress(state: PowerSGDState, index: int, matrices: list[Tensor], group: ProcessGroup) -> list[Tensor]:
    """What all ranks have of the mean of each matrix."""
    ranks = [min(*one.shape, state.matrix_approximation_rank) for one in matrices]
    rights = state.q_memory_dict.get(index) if state.warm_start else None
    if rights is None:
        with fork_rng(devices=[]):
            manual_seed(int(state.rng.randint(1_000_000_000)))  # the same on all ranks
            rights = [aten.randn([one.shape[1], rank], dtype=one.dtype) for one, rank in zip(matrices, ranks)]
    rights = [_orthonormal(one, state.orthogonalization_epsilon) for one in rights]
    lefts = _sum([aten.matmul(one, right) for one, right in zip(matrices, rights)], group)
    lefts = [_orthonormal(one, state.orthogonalization_epsilon) for one in lefts]
    rights = [one / group.size() for one in
              _sum([aten.matmul(one.t(), left) for one, left in zip(matrices, lefts)], group)]
    state.p_memory_dict[index], state.q_memory_dict[index] = lefts, rights
    state.total_numel_after_compression += sum(one.numel() for one in (*lefts, *rights))
    return [aten.matmul(left, right.t()) for left, right in zip(lefts, rights)]


def _members(state: PowerSGDState) -> ProcessGroup:
    members = resolve(state.process_group)
    if members is None:
        raise ValueError("this process is not in the group of the communication hook")
    return members


def _done(state: PowerSGDState, bucket: Any, flat: Tensor, given: Tensor) -> Future[Tensor]:
    if state.use_error_feedback:
        state.error_dict[bucket.index()] = given - flat
    if bucket.is_last():
        state.iter += 1
    future: Future[Tensor] = Future()
    future.set_result(flat)
    return future


def _given(state: PowerSGDState, bucket: Any) -> Tensor:
    """The gradients with what was lost of those before."""
    flat, lost = bucket.buffer(), state.error_dict.get(bucket.index()) if state.use_error_feedback else None
    if lost is not None and lost.numel() == flat.numel():
        flat.add_(lost)
    return aten.clone(flat)


def _plain(state: PowerSGDState, bucket: Any) -> Future[Tensor]:
    if bucket.is_last():
        state.iter += 1
    return allreduce_hook(_members(state), bucket)


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Tensor]:
    """Compress the gradients that are matrices; others, and those that would hardly become smaller, travel whole."""
    if state.iter < state.start_powerSGD_iter:
        return _plain(state, bucket)
    members = _members(state)
    with no_grad():
        given = _given(state, bucket)
        pieces = bucket.gradients()
        small: list[Tensor] = []
        large: list[Tensor] = []
        for piece in pieces:
            matrix = piece.view(piece.shape[0], -1) if piece.dim() > 0 else piece.view(1, 1)
            rows, columns = matrix.shape
            rank = min(rows, columns, state.matrix_approximation_rank)
            is_worth_it = (rows + columns) * rank * state.min_compression_rate < rows * columns
            (large if is_worth_it else small).append(matrix)
        state.total_numel_before_compression += given.numel()
        if small:
            state.total_numel_after_compression += sum(one.numel() for one in small)
            for matrix, mean in zip(small, _sum(small, members)):
                matrix.copy_(mean / members.size())
        if large:
            for matrix, mean in zip(large, _compress(state, bucket.index(), large, members)):
                matrix.copy_(mean)
        return _done(state, bucket, bucket.buffer(), given)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Tensor]:
    """Compress all gradients of a bucket as one square matrix."""
    if state.iter < state.start_powerSGD_iter:
        return _plain(state, bucket)
    members = _members(state)
    with no_grad():
        given = _given(state, bucket)
        flat = bucket.buffer()
        side = math.ceil(math.sqrt(flat.numel()))
        square = aten.zeros([side * side], dtype=flat.dtype)
        square[:flat.numel()].copy_(flat)
        state.total_numel_before_compression += flat.numel()
        mean = _compress(state, bucket.index(), [square.view(side, side)], members)[0]
        flat.copy_(mean.reshape(-1)[:flat.numel()])
        return _done(state, bucket, flat, given)

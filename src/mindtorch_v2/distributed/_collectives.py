"""Collectives on tensors. Each states what must be the same on all ranks, starts MPI's collective, and finishes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from .._backends.sparse import COO, SparseArray, coalesce
from .._tensor import Tensor
from ._buffers import Buffer, check_list, check_tensor, facts
from ._groups import ProcessGroup, resolve
from ._mpi import mpi
from ._reduction import ReduceOp, conclude, movement, operation, prepare, reduce_op
from ._work import Steps, Work

__all__ = ["all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
           "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "reduce",
           "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter"]


def _end(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work.detach()
    work.finish()
    return None


def _root(group: ProcessGroup, global_rank: int | None, group_rank: int | None, name: str, what: str) -> int:
    """The place in the group of the rank that a call names, by either number."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError(f"Can't specify both group_{name} and {name}")
        if not 0 <= group_rank < group.size():
            raise ValueError(f"{what}: group_{name} {group_rank} is not in a group of {group.size()} ranks")
        return group_rank
    if global_rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    return group.group_rank(global_rank, what)


def _same_dtype(tensors: list[Tensor], what: str) -> None:
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypes. Found {tensors[0].dtype} and "
                             f"{tensor.dtype} in {what}")


def _blocks(tensors: list[Tensor], read: bool) -> np.ndarray:
    """One array for a list of tensors of one size, a row for each."""
    joined = np.empty((len(tensors), tensors[0].numel()), Buffer(tensors[0], read=False).array.dtype)
    if read:
        for row, tensor in zip(joined, tensors):
            row[:] = Buffer(tensor).array.reshape(-1)
    return joined


def _unpack(joined: np.ndarray, tensors: list[Tensor]) -> None:
    for row, tensor in zip(joined, tensors):
        buffer = Buffer(tensor, read=False)
        buffer.array.reshape(-1)[:] = row
        buffer.write_back()


def _sizes(tensors: list[Tensor], like: Tensor, count: int, name: str, what: str) -> None:
    if len(tensors) != count:
        raise RuntimeError(f"{what}: {name} should have one tensor for each of the {count} ranks, but has "
                           f"{len(tensors)}")
    _same_dtype([like, *tensors], what)
    for place, tensor in enumerate(tensors):
        if tensor.numel() != like.numel():
            raise RuntimeError(f"{what}: tensor {place} of {name} has {tensor.numel()} elements, but each should have "
                               f"{like.numel()}")


# -- one to all, all to one ------------------------------------------------------------------------------------------

def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """Give all ranks the tensor of one rank."""
    check_tensor(tensor, "tensor", "broadcast")
    members = resolve(group)
    if members is None:
        return None
    root = _root(members, src, group_src, "src", "broadcast")
    buffer = Buffer(tensor)
    return _end(members.collective(
        "broadcast", f"{facts(tensor)}, src={members.global_rank(root)}",
        lambda: members._data.Ibcast(movement(buffer.array), root), [tensor], buffer.write_back,
        dtype=tensor.dtype, elements=(tensor.numel(), tensor.numel())), async_op)


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Give one rank the tensors of all ranks."""
    check_tensor(tensor, "tensor", "gather")
    members = resolve(group)
    if members is None:
        return None
    root = _root(members, 0 if dst is None and group_dst is None else dst, group_dst, "dst", "gather")
    joined = None
    outputs: list[Tensor] = []
    if members.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        outputs = check_list(gather_list, "gather_list", "gather")
        _sizes(outputs, tensor, members.size(), "gather_list", "gather")
        joined = _blocks(outputs, read=False)
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    buffer = Buffer(tensor)
    return _end(members.collective(
        "gather", f"{facts(tensor)}, dst={members.global_rank(root)}",
        lambda: members._data.Igather(movement(buffer.array), None if joined is None else movement(joined), root),
        outputs, None if joined is None else lambda: _unpack(joined, outputs), dtype=tensor.dtype,
        elements=(tensor.numel(), tensor.numel() * len(outputs))), async_op)


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None,
            async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Give each rank one of the tensors of one rank."""
    check_tensor(tensor, "tensor", "scatter")
    members = resolve(group)
    if members is None:
        return None
    root = _root(members, 0 if src is None and group_src is None else src, group_src, "src", "scatter")
    joined = None
    if members.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        inputs = check_list(scatter_list, "scatter_list", "scatter")
        _sizes(inputs, tensor, members.size(), "scatter_list", "scatter")
        joined = _blocks(inputs, read=True)
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    buffer = Buffer(tensor, read=False)
    return _end(members.collective(
        "scatter", f"{facts(tensor)}, src={members.global_rank(root)}",
        lambda: members._data.Iscatter(None if joined is None else movement(joined), movement(buffer.array), root),
        [tensor], buffer.write_back, dtype=tensor.dtype,
        elements=(0 if joined is None else joined.size, tensor.numel())), async_op)


# -- reductions ------------------------------------------------------------------------------------------------------

def _reduction(what: str, tensor: Tensor, op: Any) -> tuple[ReduceOp, Any, Any, Any]:
    chosen = reduce_op(op)
    buffer_dtype = Buffer(tensor, read=False).array.dtype
    return chosen, *operation(chosen, buffer_dtype, what)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Give all ranks the sum, or another reduction, of their tensors; in place."""
    work = begin_all_reduce(tensor, op, group)
    return None if work is None else _end(work, async_op)


def begin_all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Work | None:
    """The work of an `all_reduce`, which the caller detaches or finishes; None if this process is not in the group."""
    check_tensor(tensor, "tensor", "all_reduce")
    members = resolve(group)
    if members is None:
        return None
    if isinstance(tensor._a, SparseArray):
        return _begin_sparse_sum(tensor, tensor._a, reduce_op(op), members)
    chosen, mpi_op, datatype, seen_as = _reduction("all_reduce", tensor, op)
    buffer = Buffer(tensor)

    def start() -> Any:
        prepare(chosen, buffer.array)
        return members._data.Iallreduce(mpi().IN_PLACE, [buffer.array.reshape(-1).view(seen_as), datatype], mpi_op)

    def finish() -> None:
        conclude(chosen, buffer.array, members.size())
        buffer.write_back()

    return members.collective("all_reduce", f"{facts(tensor)}, {chosen.op.name}", start, [tensor], finish,
                              dtype=tensor.dtype, elements=(tensor.numel(), tensor.numel()))


def _begin_sparse_sum(tensor: Tensor, held: SparseArray, op: ReduceOp, members: ProcessGroup) -> Work:
    """The elements of all ranks, with those at the same position added up. Ranks may have any number of elements."""
    if op.op is not ReduceOp.SUM or held.layout != COO:
        raise RuntimeError(f"all_reduce: unsupported reduction operation (allreduce of sparse tensors only works with "
                           f"ReduceOp.SUM, and with coordinates), but got {op!r} of a {held.layout} tensor")
    own, size = coalesce(held), members.size()
    made: dict[str, np.ndarray] = {}

    def start() -> Steps:
        counts = np.empty(size, np.int64)
        yield members._data.Iallgather(np.array([len(own.values)], np.int64), counts)
        last: Any = None
        for name, sent in (("places", np.ascontiguousarray(own.indices.T)), ("values", own.values)):
            if last is not None:
                yield last
            made[name] = np.empty((int(counts.sum()), *sent.shape[1:]), sent.dtype)
            row = sent.dtype.itemsize * math.prod(sent.shape[1:])
            target, datatype = movement(made[name])
            last = members._data.Iallgatherv(movement(sent), [target, (counts * row).tolist(), datatype])
        return last

    def finish() -> None:
        held.take_over(coalesce(SparseArray(np.ascontiguousarray(made["places"].T), made["values"], own.shape, False)))

    return members.collective("all_reduce", f"sparse {tensor.dtype}, shape {tuple(tensor.shape)}, {op.op.name}", start,
                              [tensor], finish, dtype=tensor.dtype, elements=(own.values.size, own.values.size))


def all_reduce_coalesced(tensors: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None,
                         async_op: bool = False) -> Work | None:
    """`all_reduce` of several tensors of one dtype, in one message."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    check_list(tensors, "tensors", "all_reduce_coalesced")
    _same_dtype(tensors, "all_reduce_coalesced")
    members = resolve(group)
    if members is None or not tensors:
        return None
    chosen, mpi_op, datatype, seen_as = _reduction("all_reduce_coalesced", tensors[0], op)
    joined = np.concatenate([Buffer(tensor).array.reshape(-1) for tensor in tensors])

    def start() -> Any:
        prepare(chosen, joined)
        return members._data.Iallreduce(mpi().IN_PLACE, [joined.view(seen_as), datatype], mpi_op)

    def finish() -> None:
        conclude(chosen, joined, members.size())
        place = 0
        for tensor in tensors:
            _unpack(joined[None, place:place + tensor.numel()], [tensor])
            place += tensor.numel()

    sizes = ", ".join(facts(tensor) for tensor in tensors)
    return _end(members.collective("all_reduce_coalesced", f"{sizes}, {chosen.op.name}", start, tensors, finish,
                                   dtype=tensors[0].dtype, elements=(joined.size, joined.size)), async_op)


def reduce(tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:
    """Give one rank the reduction of all tensors, in place; the others keep theirs."""
    check_tensor(tensor, "tensor", "reduce")
    members = resolve(group)
    if members is None:
        return None
    root = _root(members, dst, group_dst, "dst", "reduce")
    chosen, mpi_op, datatype, seen_as = _reduction("reduce", tensor, op)
    is_root = members.rank() == root
    buffer = Buffer(tensor)
    sent = buffer.array if is_root else buffer.array.copy() if chosen.op is ReduceOp.PREMUL_SUM else buffer.array

    def start() -> Any:
        prepare(chosen, sent)
        values = [sent.reshape(-1).view(seen_as), datatype]
        return members._data.Ireduce(mpi().IN_PLACE if is_root else values, values if is_root else None, mpi_op, root)

    def finish() -> None:
        if is_root:
            conclude(chosen, buffer.array, members.size())
            buffer.write_back()

    return _end(members.collective(
        "reduce", f"{facts(tensor)}, {chosen.op.name}, dst={members.global_rank(root)}", start, [tensor], finish,
        dtype=tensor.dtype, elements=(tensor.numel(), tensor.numel() if is_root else 0)), async_op)


def _scattered(what: str, output: Tensor, inputs: Callable[[], np.ndarray], op: Any, members: ProcessGroup,
               async_op: bool) -> Work | None:
    chosen, mpi_op, datatype, seen_as = _reduction(what, output, op)
    buffer = Buffer(output, read=False)
    sent = inputs()

    def start() -> Any:
        nonlocal sent
        if chosen.op is ReduceOp.PREMUL_SUM:
            sent = sent.copy()
            prepare(chosen, sent)
        return members._data.Ireduce_scatter_block([sent.reshape(-1).view(seen_as), datatype],
                                                   [buffer.array.reshape(-1).view(seen_as), datatype], mpi_op)

    def finish() -> None:
        conclude(chosen, buffer.array, members.size())
        buffer.write_back()

    return _end(members.collective(what, f"{facts(output)}, {chosen.op.name}", start, [output], finish,
                                   dtype=output.dtype, elements=(sent.size, output.numel())), async_op)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:
    """Give each rank its part of the reduction of lists that have a tensor for each rank."""
    check_tensor(output, "output", "reduce_scatter")
    check_list(input_list, "input_list", "reduce_scatter")
    members = resolve(group)
    if members is None:
        return None
    _sizes(input_list, output, members.size(), "input_list", "reduce_scatter")
    return _scattered("reduce_scatter", output, lambda: _blocks(input_list, read=True), op, members, async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None,
                          async_op: bool = False) -> Work | None:
    """Give each rank its part of the reduction of tensors that have a part for each rank."""
    check_tensor(output, "output", "reduce_scatter_tensor")
    check_tensor(input, "input", "reduce_scatter_tensor")
    members = resolve(group)
    if members is None:
        return None
    _same_dtype([output, input], "reduce_scatter_tensor")
    if input.numel() != output.numel() * members.size():
        raise RuntimeError(f"reduce_scatter_tensor: input tensor must be the same size as output size times world "
                           f"size: {input.numel()} elements are not {output.numel()} times {members.size()}")
    return _scattered("reduce_scatter_tensor", output, lambda: Buffer(input).array, op, members, async_op)


reduce_scatter_single = reduce_scatter_tensor


# -- all to all ------------------------------------------------------------------------------------------------------

def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Give all ranks the tensors of all ranks, as a list."""
    check_list(tensor_list, "tensor_list", "all_gather")
    check_tensor(tensor, "tensor", "all_gather")
    members = resolve(group)
    if members is None:
        return None
    _sizes(tensor_list, tensor, members.size(), "tensor_list", "all_gather")
    buffer = Buffer(tensor)
    joined = _blocks(tensor_list, read=False)
    return _end(members.collective(
        "all_gather", facts(tensor), lambda: members._data.Iallgather(movement(buffer.array), movement(joined)),
        tensor_list, lambda: _unpack(joined, tensor_list), dtype=tensor.dtype,
        elements=(tensor.numel(), joined.size)), async_op)


def all_gather_coalesced(output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None,
                         async_op: bool = False) -> Work | None:
    """`all_gather` of several tensors: a list for each rank, with a tensor for each input."""
    check_list(input_tensor_list, "input_tensor_list", "all_gather_coalesced")
    members = resolve(group)
    if members is None or not input_tensor_list:
        return None
    _same_dtype(input_tensor_list, "all_gather_coalesced")
    if len(output_tensor_lists) != members.size():
        raise ValueError(f"all_gather_coalesced: output_tensor_lists should have one list for each of the "
                         f"{members.size()} ranks, but has {len(output_tensor_lists)}")
    for outputs in output_tensor_lists:
        shapes = [tuple(one.shape) for one in check_list(outputs, "output_tensor_lists", "all_gather_coalesced")]
        if shapes != [tuple(one.shape) for one in input_tensor_list]:
            raise ValueError(f"all_gather_coalesced: outputs of shapes {shapes} do not fit the inputs")
    sent = np.concatenate([Buffer(tensor).array.reshape(-1) for tensor in input_tensor_list])
    joined = np.empty((members.size(), sent.size), sent.dtype)

    def finish() -> None:
        for row, outputs in zip(joined, output_tensor_lists):
            place = 0
            for tensor in outputs:
                _unpack(row[None, place:place + tensor.numel()], [tensor])
                place += tensor.numel()

    return _end(members.collective(
        "all_gather_coalesced", ", ".join(map(facts, input_tensor_list)),
        lambda: members._data.Iallgather(movement(sent), movement(joined)), output_tensor_lists, finish,
        dtype=input_tensor_list[0].dtype, elements=(sent.size, joined.size)), async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:
    """Give all ranks the tensors of all ranks, one after the other in one tensor."""
    check_tensor(output_tensor, "output_tensor", "all_gather_into_tensor")
    check_tensor(input_tensor, "input_tensor", "all_gather_into_tensor")
    members = resolve(group)
    if members is None:
        return None
    _same_dtype([output_tensor, input_tensor], "all_gather_into_tensor")
    if output_tensor.numel() != input_tensor.numel() * members.size():
        raise RuntimeError(f"all_gather_into_tensor: output tensor size must be equal to world_size times input tensor "
                           f"size: {output_tensor.numel()} elements are not {members.size()} times "
                           f"{input_tensor.numel()}")
    sent, received = Buffer(input_tensor), Buffer(output_tensor, read=False)
    source = sent.array.copy() if np.may_share_memory(sent.array, received.array) else sent.array
    return _end(members.collective(
        "all_gather_into_tensor", facts(input_tensor),
        lambda: members._data.Iallgather(movement(source), movement(received.array)), [output_tensor],
        received.write_back, dtype=input_tensor.dtype, elements=(input_tensor.numel(), output_tensor.numel())),
        async_op)


all_gather_single = all_gather_into_tensor


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None,
               async_op: bool = False) -> Work | None:
    """Give each rank one of the tensors of every rank; sizes may differ."""
    check_list(output_tensor_list, "output_tensor_list", "all_to_all")
    check_list(input_tensor_list, "input_tensor_list", "all_to_all")
    members = resolve(group)
    if members is None:
        return None
    for name, tensors in (("output_tensor_list", output_tensor_list), ("input_tensor_list", input_tensor_list)):
        if len(tensors) != members.size():
            raise ValueError(f"all_to_all: {name} should have one tensor for each of the {members.size()} ranks, but "
                             f"has {len(tensors)}")
    _same_dtype([*output_tensor_list, *input_tensor_list], "all_to_all")
    width = input_tensor_list[0].element_size()
    sent = np.concatenate([Buffer(one).array.reshape(-1) for one in input_tensor_list])
    received = np.empty(sum(one.numel() for one in output_tensor_list), sent.dtype)

    def finish() -> None:
        place = 0
        for tensor in output_tensor_list:
            _unpack(received[None, place:place + tensor.numel()], [tensor])
            place += tensor.numel()

    return _end(_exchange(members, "all_to_all", str(input_tensor_list[0].dtype), sent,
                          [one.numel() * width for one in input_tensor_list], received,
                          [one.numel() * width for one in output_tensor_list], output_tensor_list, finish), async_op)


def _exchange(members: ProcessGroup, what: str, said: str, sent: np.ndarray, sent_bytes: list[int],
              received: np.ndarray, received_bytes: list[int], result: list[Tensor],
              finish: Callable[[], None]) -> Work:
    def start() -> Steps:
        if members.checks:
            yield from _same_splits(members, what, sent_bytes, received_bytes)
        source, datatype = movement(sent)
        target, _ = movement(received)
        return members._data.Ialltoallv([source, sent_bytes, datatype], [target, received_bytes, datatype])

    return members.collective(what, said, start, result, finish, dtype=result[0].dtype,
                              elements=(sent.size, received.size))


def _same_splits(members: ProcessGroup, what: str, sent_bytes: list[int], received_bytes: list[int]) -> Steps:
    """Raise on all ranks if one of them expects another size than it will get."""
    coming, expected = np.empty(members.size(), np.int64), np.array(received_bytes, np.int64)
    yield members._data.Ialltoall(np.array(sent_bytes, np.int64), coming)
    wrong = np.flatnonzero(coming != expected)
    found = np.array([wrong.size], np.int64)
    yield members._data.Iallreduce(mpi().IN_PLACE, found, mpi().MAX)
    if found[0]:
        said = "gets what it expects"
        if wrong.size:
            place = int(wrong[0])
            said = (f"expects {expected[place]} bytes from rank {members.global_rank(place)}, which sends "
                    f"{coming[place]}")
        yield from members.disagree("the sizes of an exchange", f"{what}: {said}")


def _splits(tensor: Tensor, given: list[int] | None, name: str, ranks: int) -> list[int]:
    rows = tensor.shape[0] if tensor.dim() else 0
    if not given:
        if rows % ranks:
            raise RuntimeError(f"all_to_all_single: tensor's dim 0 ({rows}) does not divide equally across group size "
                               f"{ranks}; give {name}_split_sizes")
        return [rows // ranks] * ranks
    if len(given) != ranks:
        raise RuntimeError(f"all_to_all_single: {name}_split_sizes should have {ranks} numbers, but has {len(given)}")
    if sum(given) != rows:
        raise RuntimeError(f"all_to_all_single: {name}_split_sizes {list(given)} do not sum to total dim 0 size {rows}")
    return list(given)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None, group: Any = None,
                      async_op: bool = False) -> Work | None:
    """Give each rank some rows of every rank's tensor."""
    check_tensor(output, "output", "all_to_all_single")
    check_tensor(input, "input", "all_to_all_single")
    members = resolve(group)
    if members is None:
        return None
    _same_dtype([output, input], "all_to_all_single")

    def in_bytes(tensor: Tensor, rows: list[int]) -> list[int]:
        row = tensor.element_size() * (tensor.numel() // tensor.shape[0] if tensor.numel() else 0)
        return [count * row for count in rows]

    sent_bytes = in_bytes(input, _splits(input, input_split_sizes, "input", members.size()))
    received_bytes = in_bytes(output, _splits(output, output_split_sizes, "output", members.size()))
    sent, received = Buffer(input), Buffer(output, read=False)
    return _end(_exchange(members, "all_to_all_single", str(input.dtype), sent.array, sent_bytes, received.array,
                          received_bytes, [output], received.write_back), async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None,
            timeout: timedelta | None = None) -> Work | None:
    """Return when all ranks have called it."""
    members = resolve(group)
    if members is None:
        return None
    return _end(members.collective("barrier", "", lambda: members._data.Ibarrier(), [], timeout=timeout), async_op)

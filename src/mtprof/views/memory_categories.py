"""The category of each block of memory, as in PyTorch.

Modules and optimizers state their parameters, gradients and state; the rest follows from the data flow. Memory that
reaches a parameter or a gradient without coming from one is an input. Memory that the forward computes from parameters
is an activation. Memory that the backward leaves behind on its way to the gradients is a detail of autograd. Memory
that does not outlive the op that allocated it is temporary. All other memory has no category.
"""

from __future__ import annotations

import enum
from itertools import pairwise

import numpy as np

from ..schema import Role
from ..trace import Trace
from .memory_blocks import Blocks
from .memory_flow import Flow
from .tensor_ids import of_one_tensor


class Category(enum.Enum):
    """The categories of memory."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


UNKNOWN = 0  # in columns; the others are the values of Category
CATEGORIES: tuple[Category | None, ...] = (None, *Category)

ACCUMULATE = "torch::autograd::AccumulateGrad"
TAKES_OR_ADDS = ("aten::detach", "aten::add_")  # what an accumulator does with the first and any further gradient


def categories_of(trace: Trace, blocks: Blocks, flow: Flow) -> np.ndarray:
    """The category of each slot, which is a version of a block, as the value of Category or UNKNOWN."""
    steps = _Steps(blocks, flow)
    tensors = of_one_tensor(trace, blocks, np.ones(len(blocks), bool))
    of_block = np.zeros(len(blocks), np.uint8)
    of_block[flow.block[flow.passing]] = Category.TEMPORARY.value
    role = trace.optional("roles")["role"]
    gradients = np.concatenate((_accumulated(trace, blocks), blocks.of_role[role == Role.GRADIENT]))
    for found, category in ((gradients, Category.GRADIENT),
                            (blocks.of_role[role == Role.PARAMETER], Category.PARAMETER)):
        of_block[np.isin(tensors, tensors[found])] = category.value
    known = np.repeat(of_block, np.diff(flow.slots))
    known = steps.inputs(known)
    parameters = steps.parameters(known)
    parameters = np.isin(tensors, tensors[parameters])
    known[parameters[steps.block_of_slot]] = Category.PARAMETER.value
    known = steps.activations(known)
    state = np.isin(tensors, tensors[blocks.of_role[role == Role.OPTIMIZER_STATE]])
    known[state[steps.block_of_slot]] = Category.OPTIMIZER_STATE.value
    return steps.autograd_details(known)


def _accumulated(trace: Trace, blocks: Blocks) -> np.ndarray:
    """Blocks that autograd accumulates gradients in."""
    events, uses = trace.events, trace.optional("uses")
    accumulator = np.array([name == ACCUMULATE for name in trace.names], bool)
    first_op = np.array([name in TAKES_OR_ADDS for name in trace.names], bool)
    parent = events["parent"][uses["row"]]
    above = np.where(parent >= 0, events["name"][parent] if len(events["name"]) else 0, 0)
    found = (parent >= 0) & accumulator[above] & first_op[events["name"][uses["row"]]] & (uses["argument"] == 0)
    return blocks.of_use[found & (blocks.of_use >= 0)]


class _Steps:
    """The flow as plain lists per step: facts travel along it from step to step, which columns cannot do at once."""

    def __init__(self, blocks: Blocks, flow: Flow) -> None:
        self.flow = flow
        self.blocks = len(blocks)
        self.block_of_slot = np.repeat(np.arange(len(blocks)), np.diff(flow.slots))
        count = len(flow.row)
        self.inputs_of = _per_step(flow.step[flow.enters], flow.slot_in[flow.enters], count)
        self.outputs_of = _per_step(flow.step[flow.leaves], flow.slot_out[flow.leaves], count)
        self.backward = flow.backward.tolist()

    def depends_on_model(self, known: np.ndarray) -> np.ndarray:
        """Which blocks at any time hold something that was computed from a gradient or a parameter."""
        result = np.zeros(self.blocks, bool)
        result[self.block_of_slot[_among(known, Category.GRADIENT, Category.PARAMETER)]] = True
        reached, blocks = result.tolist(), self.block_of_slot.tolist()
        while True:  # a round covers a forward and backward; the next one what an update carries into it
            before = sum(reached)
            for taken, left in zip(self.inputs_of, self.outputs_of):
                if any(reached[blocks[slot]] for slot in taken):
                    for slot in left:
                        reached[blocks[slot]] = True
            if sum(reached) == before:
                return np.array(reached, bool)

    def inputs(self, known: np.ndarray) -> np.ndarray:
        """Inputs: they contribute to a gradient or meet a parameter, and depend on neither."""
        contributes = _among(known, Category.GRADIENT, Category.PARAMETER).tolist()
        reached = [False] * len(contributes)
        for taken, left in zip(reversed(self.inputs_of), reversed(self.outputs_of)):
            slots = taken + left
            if any(contributes[slot] or reached[slot] for slot in slots):
                for slot in slots:
                    reached[slot] = True
        candidate = np.array(reached, bool)
        # Memory that a backward function makes belongs to autograd, wherever it goes.
        candidate[self.flow.slot_out[self.flow.leaves & self.flow.backward[self.flow.step]]] = False
        candidate &= ~self.depends_on_model(known)[self.block_of_slot]
        return np.where(candidate & (known == UNKNOWN), Category.INPUT.value, known).astype(np.uint8)

    def parameters(self, known: np.ndarray) -> np.ndarray:
        """Blocks that no module or optimizer claimed but that are used like parameters.

        They meet data from an input in the forward, a gradient depends on them, and they come to depend on a gradient.
        """
        gradient = _among(known, Category.GRADIENT).tolist()
        forward = _among(known, Category.INPUT).tolist()
        candidate = [False] * len(forward)
        for taken, left, backward in zip(self.inputs_of, self.outputs_of, self.backward):
            if backward or not any(forward[slot] for slot in taken) or any(gradient[slot] for slot in taken + left):
                continue
            for slot in left:
                forward[slot] = True
            for slot in taken:
                candidate[slot] = candidate[slot] or not forward[slot]
        used = [False] * len(forward)
        for taken, left in zip(reversed(self.inputs_of), reversed(self.outputs_of)):
            if any(gradient[slot] or used[slot] for slot in left):
                for slot in taken:
                    used[slot] = True
        result = np.zeros(self.blocks, bool)
        result[self.block_of_slot[np.array(candidate, bool) & np.array(used, bool)]] = True
        return result & self.depends_on_model(known)

    def activations(self, known: np.ndarray) -> np.ndarray:
        """Activations: what the forward computes from parameters, activations and inputs alone."""
        values = known.tolist()
        needed = {Category.INPUT.value, Category.ACTIVATION.value}
        allowed = needed | {Category.PARAMETER.value, Category.TEMPORARY.value}
        for taken, left, backward in zip(self.inputs_of, self.outputs_of, self.backward):
            if backward:
                continue
            found = {values[slot] for slot in taken}
            if found & needed and found <= allowed:
                for slot in left:
                    values[slot] = values[slot] or Category.ACTIVATION.value
        return np.array(values, np.uint8)

    def autograd_details(self, known: np.ndarray) -> np.ndarray:
        """Details of autograd: memory that backward functions leave behind and nothing else claims."""
        values = known.tolist()
        detail = Category.AUTOGRAD_DETAIL.value
        first = np.zeros(len(values), bool)
        first[self.flow.slots[:-1]] = True
        is_first = first.tolist()
        for left, backward in zip(self.outputs_of, self.backward):
            if backward:
                for slot in left:
                    if values[slot] == UNKNOWN and (is_first[slot] or values[slot - 1] in (UNKNOWN, detail)):
                        values[slot] = detail
        return np.array(values, np.uint8)


def _among(known: np.ndarray, *categories: Category) -> np.ndarray:
    return np.isin(known, [category.value for category in categories])


def _per_step(step: np.ndarray, slot: np.ndarray, count: int) -> list[list[int]]:
    """The slots of each step; edges are sorted by step."""
    bounds = np.searchsorted(step, np.arange(count + 1)).tolist()
    slots = slot.tolist()
    return [slots[low:high] for low, high in pairwise(bounds)]

"""One checkpointed call: placeholders instead of saved tensors, filled by running the function again.

The nth tensor saved during recomputation takes the place of the nth one of the forward pass, so both must save the
same tensors in the same order.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .._autograd.grad_mode import enable_grad
from .._autograd.graph import as_leaf, edge
from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._tensor import Tensor, alias
from ..autograd.graph import saved_tensors_hooks


class CheckpointError(RuntimeError):
    """Recomputation did not save what the forward pass saved."""


class _Enough(Exception):
    """Ends a recomputation that has saved everything that is needed."""


class EarlyStop:
    """Whether recomputation may end early; None leaves it to each checkpoint."""

    override: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Allow or forbid, for checkpoints made inside, to end a recomputation as soon as it has what backward needs."""
    before = EarlyStop.override
    EarlyStop.override = enable
    try:
        yield
    finally:
        EarlyStop.override = before


class Holder:
    """Stands for a tensor that a node would have saved."""

    __slots__ = ("__weakref__", "edge", "requires_grad", "value")

    def __init__(self, tensor: Tensor) -> None:
        self.value: Tensor | None = None
        self.requires_grad = tensor.requires_grad
        # Where second gradients go, for leaves too. The node that saves the tensor has an edge there anyway, or is the
        # place itself: it would keep itself alive.
        found = edge(tensor)
        self.edge = None if found is None else (weakref.ref(found[0]), found[1])


def _facts(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class Frame:
    """The placeholders of one checkpointed call and how to fill them."""

    def __init__(self, again: Callable[[tuple[Any, ...]], None], args: tuple[Any, ...], early_stop: bool,
                 check: bool, in_detail: Callable[[], str] | None = None) -> None:
        self.again = again
        self.in_detail = in_detail  # what both runs did, in words
        self.early_stop = early_stop if EarlyStop.override is None else EarlyStop.override
        self.check = check
        self.forward_ended = False
        self.holders: list[weakref.ref[Holder]] = []
        self.facts: list[dict[str, Any]] = []
        # Inside another checkpoint, tensor arguments are that one's to recompute.
        outer = THREAD.state.pack_hooks[-1] if THREAD.state.pack_hooks else None
        self.unpack_outer = None if outer is None else outer[1]
        self.packed = [isinstance(value, Tensor) and outer is not None for value in args]
        self.wanted = [isinstance(value, Tensor) and value.requires_grad for value in args]
        self.args = tuple(outer[0](value) if outer is not None and packed else value
                          for value, packed in zip(args, self.packed, strict=True))

    @contextlib.contextmanager
    def hooks(self) -> Iterator[None]:
        """Hooks for the forward pass."""
        with saved_tensors_hooks(self.pack, self.unpack):
            yield
        self.forward_ended = True

    def pack(self, tensor: Tensor) -> Holder:
        """A placeholder."""
        holder = Holder(tensor)
        self.holders.append(weakref.ref(holder))
        self.facts.append(_facts(tensor))
        return holder

    def unpack(self, holder: Holder) -> Tensor:
        """The tensor for a placeholder; the first request computes all of them."""
        if holder.value is None:
            self.recompute()
        value, holder.value = holder.value, None
        if value is None:
            raise CheckpointError("torch.utils.checkpoint: a tensor saved during forward was not recomputed")
        if not holder.requires_grad:
            return value
        tensor = alias(value)
        reference, number = holder.edge or (None, 0)
        node = None if reference is None else reference()
        tensor._rg, tensor._edge = True, None if node is None else (node, number)
        return tensor

    def inputs(self) -> tuple[Any, ...]:
        """The arguments as fresh leaves, so that the recomputed graph ends at them."""
        made = []
        for value, packed, wanted in zip(self.args, self.packed, self.wanted, strict=True):
            if packed and self.unpack_outer is not None:
                value = self.unpack_outer(value)
            if wanted:
                value = as_leaf(alias(value))
            made.append(value)
        return tuple(made)

    def recompute(self) -> None:
        """Run the function again and fill the placeholders that are still wanted."""
        count = 0
        complete = self.forward_ended  # else a backward inside the function needs what came before it
        different: list[str] = []

        def keep(tensor: Tensor) -> Tensor:
            nonlocal count
            position = count
            count += 1
            if position == len(self.holders) and complete:
                self.fail("trying to save more tensors during recomputation than during the original forward pass.")
            plain = aten.detach(tensor) if tensor.requires_grad else tensor
            if position < len(self.holders):
                holder = self.holders[position]()
                if holder is not None:
                    holder.value = plain
                if self.check and _facts(tensor) != self.facts[position]:
                    different.append(f"tensor at position {position}:\nsaved metadata: {self.facts[position]}\n"
                                     f"recomputed metadata: {_facts(tensor)}\n")
            if count == len(self.holders) and self.early_stop:
                raise _Enough
            return plain

        def given(value: Any) -> Any:
            # Only a backward inside the checkpointed function gets here.
            return value

        with contextlib.suppress(_Enough), saved_tensors_hooks(keep, given), enable_grad():
            self.again(self.inputs())
        if count != len(self.holders) and (complete or count < len(self.holders)):
            self.fail("A different number of tensors was saved during the original forward and recomputation.\n"
                      f"Number of tensors saved during forward: {len(self.holders)}\n"
                      f"Number of tensors saved during recomputation: {count}.")
        if different:
            self.fail("Recomputed values for the following tensors have different metadata than during the forward "
                      "pass.\n" + "".join(different))

    def fail(self, reason: str) -> NoReturn:
        """Say how the two runs differ."""
        if self.in_detail is not None:
            raise CheckpointError(self.in_detail()) from CheckpointError(f"torch.utils.checkpoint: {reason}")
        raise CheckpointError(f"torch.utils.checkpoint: {reason}\n\nTip: pass `debug=True` to checkpoint, or use "
                              "torch.utils.checkpoint.set_checkpoint_debug_enabled(True), to see the ops of both runs.")

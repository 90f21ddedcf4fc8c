"""Which tensors depend on the example that `vmap` runs, and what may not be done with them.

PyTorch runs the function once for all examples, so it cannot tell the program a number of one of them, and cannot write
all of them into a tensor that has no place for them. Here the function runs for each example; the first run is watched,
and refuses the same. The other runs do what the first did, because nothing in the program's flow depends on an example.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._dispatch.dispatch_modes import tensors_in
from .._dispatch.observer import tap
from .._dispatch.registry import Op
from .._dispatch.state import THREAD
from .._dispatch.watching import Watcher
from .._tensor import Tensor

PACKAGE = str(Path(__file__).parents[1])
# Files whose functions do at once what a program asks for; the others of this package have purposes of their own.
DIRECT = tuple(f"{PACKAGE}/{name}" for name in (
    "_methods.py", "_tensor.py", "_tensor_methods.py", "_tensor_facts.py", "_faces.py", "_functions.py",
    "_numpy_names.py", "functional.py", "_dispatch/", "_ops/", "func/mapped.py"))
INDEXING = f"{PACKAGE}/_ops/indexing.py"  # reads an index that is a tensor of one number
NUMBERS = frozenset({"_local_scalar_dense", "item"})
DECISIONS = frozenset({"is_nonzero"})
ALL_AT_ONCE = {
    "allclose": "vmap over torch.allclose isn't supported",
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback"}
MASKS = frozenset({"index", "index_put"})  # with a mask that depends on the example
DYNAMIC = frozenset({"masked_select", "nonzero", "unique_consecutive", "unique_dim", "_unique2"})


class Mapped(Watcher):
    """The tap that marks results of ops on marked tensors. A mark belongs to an array."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: dict[int, weakref.ref[Any]] = {}

    def wants(self) -> bool:
        """Whether this thread runs a first example."""
        return MINE.running > 0

    def mark(self, tensors: Iterable[Tensor]) -> None:
        """These depend on the example."""
        for tensor in tensors:
            key = id(tensor._a)
            with contextlib.suppress(TypeError):  # an array of a device cannot be followed
                self.marks[key] = weakref.ref(tensor._a, partial(self.forget, key))

    def forget(self, key: int, reference: Any) -> None:
        """The array with this id is gone."""
        if self.marks.get(key) is reference:
            del self.marks[key]

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on the example."""
        found = self.marks.get(id(tensor._a))
        return found is not None and found() is tensor._a

    def watch(self, op: Op, inplace: bool, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Run an op, and mark its results."""
        given = tensors_in(arguments.values())
        marked = [one for one in given if self.has(one)]
        if not marked:
            return self.looked_at(function, arguments)
        outside = MINE.depth == 0 and THREAD.state.walk is None
        changed = given[0] if inplace or op.name[-1:] == "_" != op.name[-2:-1] else None
        if op.name == "batch_norm":
            self.refuse_statistics(arguments)
        if outside and asked_by_program(not_by=INDEXING if op.name in NUMBERS else ""):
            self.refuse(op, changed, arguments)
        MINE.depth += op.composite is not None
        try:
            made = self.looked_at(function, arguments)
        finally:
            MINE.depth -= op.composite is not None
        self.mark(tensors_in([*given[:1]] if changed is not None else [made]))
        return made

    def refuse_statistics(self, arguments: dict[str, Any]) -> None:
        """Running statistics that all examples have in common cannot follow each of them."""
        kept = arguments.get("running_mean")
        if arguments.get("training") and kept is not None and not self.has(kept):
            raise RuntimeError("Batch norm got a batched tensor as input while the running_mean or running_var, which "
                               "will be updated in place, were not batched. Use track_running_stats=False, eval mode, "
                               "or torch.func.replace_all_batch_norm_modules_.")

    def refuse(self, op: Op, changed: Tensor | None, arguments: dict[str, Any]) -> None:
        """Raise the error of an op that needs one example, or would write all of them into one place."""
        name = op.name
        if name in DECISIONS:
            raise RuntimeError("vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
                               "flow, which would be the same for all examples. Use torch.where instead.")
        if name in NUMBERS:
            raise RuntimeError("vmap: It looks like you're calling .item() on a Tensor, which has another number for "
                               "each example. Use operations on tensors instead.")
        if name in ALL_AT_ONCE:
            raise RuntimeError(f"{ALL_AT_ONCE[name]}: its answer would be the same for all examples.")
        if name in DYNAMIC or (name in MASKS and any(one.dtype.name == "bool" and self.has(one) for one in
                                                       tensors_in([arguments.get("indices") or ()]))):
            raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted "
                               f"to vmap over aten::{name}.")
        if changed is not None and not self.has(changed):
            raise RuntimeError(f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a "
                               f"Tensor `other` in extra_args that has more elements than `self`: aten::{name} would "
                               "write what differs from example to example into a tensor that has no dimension for "
                               "the examples. Use an out-of-place operation, or make `self` with new_empty, "
                               "zeros_like and the like.")


class _Thread(threading.local):
    """How many first examples this thread runs, one inside the other, and in how many composite ops it is."""

    running = 0
    depth = 0


MINE = _Thread()
MAPPED = Mapped()
RUNNING: list[None] = []  # one entry for each first example that runs in any thread


def asked_by_program(not_by: str) -> bool:
    """Whether the op that runs now was called by code that is not of this package, and not through one of its files."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == not_by:
            return False
        if not name.startswith(("<mindtorch", *DIRECT)):
            return not name.startswith(PACKAGE)
        frame = frame.f_back
    return False


@contextlib.contextmanager
def first_example(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Watch what is done with these tensors and what depends on them."""
    MAPPED.mark(one for one in tensors if type(one._a) is np.ndarray)
    RUNNING.append(None)
    MINE.running += 1
    tap(MAPPED, "vmap")
    try:
        yield
    finally:
        MINE.running -= 1
        RUNNING.pop()
        if not RUNNING:
            tap(None, "vmap")
            MAPPED.marks.clear()

"""`__torch_dispatch__`: modes that are given every op, below autograd, and answer in its place.

They sit at the tap that execution traces use (see `observer.tap`): without a mode no op asks. An op made of other ops
runs, and its parts are given to the mode; an op with a kernel is given to the mode itself. If a gradient is wanted, the
op's node is recorded afterwards, around what the mode has returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any


from .._tensor import Tensor
from .autocast import casts
from .autocast_lists import POLICIES
from .dispatcher import compile_op
from .observer import HOOK, tap
from .registry import Op
from .schema import as_given
from .state import THREAD

# Ops that are made of others here and have kernels in PyTorch: a mode is given the whole.
WHOLE_FAMILIES = ("_foreach_", "_fused_", "_amp_", "bartlett_", "blackman_", "hamming_", "hann_", "kaiser_")
WHOLE = frozenset({
    "__ilshift__", "__irshift__", "_addmm_activation", "_embedding_bag_backward", "_is_all_true", "_is_any_true",
    "_local_scalar_dense", "_native_multi_head_attention", "_transformer_encoder_layer_fwd", "allclose", "arange",
    "as_strided_", "channel_shuffle", "cholesky_solve", "conj_physical_", "detach", "detach_", "empty", "empty_like",
    "empty_permuted", "empty_strided", "equal", "eye", "fft_fftfreq", "fft_rfftfreq", "full", "full_like",
    "is_same_size", "is_set_to", "isnan", "lift_fresh", "linalg_householder_product", "linalg_lstsq",
    "linalg_lu_solve", "linspace", "logspace", "masked_scatter_backward", "new_empty", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "normal", "ones", "ones_like", "ormqr", "polygamma_", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "range", "resize_", "resize_as_", "scalar_tensor",
    "slice_inverse", "squeeze_", "t_", "transpose_", "tril_indices", "triu_indices", "unsqueeze_", "zeros",
    "zeros_like"})


class _Thread(threading.local):
    """A thread's modes, innermost last, and whether the op that asks next is one that a mode has called."""

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.skip = False
        self.made: Any = None


MINE = _Thread()
# One entry for each mode that is active in any thread.
ACTIVE: list[Any] = []
# Set by `torch.ops`: the overload that stands for an op there.
OVERLOAD_OF: list[Callable[[Op, bool], Any]] = []


class _Tap:
    """Gives ops to the thread's innermost mode."""

    def takes(self) -> bool:
        """Whether the op that asks goes to a mode."""
        if MINE.skip:
            MINE.skip = False
            return False
        return bool(MINE.modes)

    def run(self, op: Op, inplace: bool, arguments: dict[str, Any]) -> Any:
        """Run an op whose turn it is."""
        if op.composite is not None and op.namespace == "aten" and not (
                op.name in WHOLE or op.name.startswith(WHOLE_FAMILIES)):
            return self.undisturbed(compile_op(op, inplace), arguments)
        state = THREAD.state
        if HOOK["AUTOCAST"] and op.key in POLICIES and not inplace and casts(arguments.values()):
            # Its arguments are cast first; then it asks again.
            return self.undisturbed(compile_op(op), arguments)
        # An in-place op is recorded as it runs: its formula may need what it is about to overwrite.
        recorded = state.grad and bool(op.grad) and not inplace and any(
            one.requires_grad for one in _tensors(arguments.values()))
        if not recorded:
            return self.ask(op, inplace, arguments)
        state.grad = False
        try:
            made = self.ask(op, inplace, arguments)
        finally:
            state.grad = True
        MINE.made = made
        try:
            return _delivering(op)(**arguments)
        finally:
            MINE.made = None

    @staticmethod
    def undisturbed(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call an op's function, which is not to ask again."""
        MINE.skip = True
        try:
            return function(**arguments)
        finally:
            MINE.skip = False

    def ask(self, op: Op, inplace: bool, arguments: dict[str, Any]) -> Any:
        """Let the innermost mode answer; the ops that it calls go to the next one."""
        values = dict(arguments)
        # An argument of the op itself may be called `out` too.
        out = values.pop("out") if len(values) > len(op.schema.arguments) else None
        args, kwargs = as_given(op.schema, values.values())
        if out is not None:
            kwargs["out"] = out
        THREAD.state.exposed += 1
        mode = MINE.modes.pop()
        try:
            return mode.__torch_dispatch__(OVERLOAD_OF[0](op, inplace), (), args, kwargs)
        finally:
            MINE.modes.append(mode)

    def enter(self, event: int, seq: int, given: Any, graph_node: Any = None) -> None:
        """Spans that are no ops are nothing to a mode."""


TAP = _Tap()


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [one for one in value if isinstance(one, Tensor)]
    return found


def _deliver(*values: Any) -> Any:
    """Stands for the kernel where a mode has done its work already."""
    made = MINE.made
    return [one._a for one in made] if isinstance(made, (tuple, list)) else made._a


_DELIVERING: dict[Op, Callable[..., Any]] = {}


def _delivering(op: Op) -> Callable[..., Any]:
    """The op's function with `_deliver` for its kernel."""
    found = _DELIVERING.get(op)
    if found is None:
        made: Any = compile_op(op)
        if hasattr(made, "__face__"):
            made = made.__wrapped__  # as it is when it does not ask for overriders
        cells = tuple(CellType(_deliver) if name in ("kernel_", "kernel_full_") else cell
                      for name, cell in zip(made.__code__.co_freevars, made.__closure__, strict=True))
        # It has a namespace of its own: there is nothing left to observe, no new memory and no cast.
        space = {**HOOK, "OBSERVING": False, "ALLOCATED": None, "AUTOCAST": False,
                 "device_kernel": lambda op, array, form: _deliver}
        copy = FunctionType(made.__code__, space, made.__name__, made.__defaults__, cells)
        copy.__kwdefaults__ = made.__kwdefaults__
        found = _DELIVERING[op] = copy
    return found


def enter(mode: Any) -> None:
    """From now on this thread's ops go to a mode."""
    tap(TAP)
    ACTIVE.append(mode)
    MINE.modes.append(mode)


def leave() -> None:
    """Until now."""
    MINE.modes.pop()
    ACTIVE.pop()
    if not ACTIVE:
        tap(None)

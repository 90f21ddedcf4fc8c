"""`__torch_dispatch__`: modes, which get every op, and tensor classes, which get the ops on their instances.

They use the same tap as execution traces (see `observer.tap`): without a mode, and while no instance of such a class
lives, no op asks. An op made of other ops runs, and its parts are passed on. An op with a kernel is passed on itself,
below autograd. If a gradient is needed, the op's node is recorded afterwards, around the returned result.
"""

from __future__ import annotations

import importlib
import threading
import weakref
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from .._autograd.graph import detached, edge
from .._autograd.inplace import bump, check_inplace
from .._device import CPU
from .._tensor import DISPATCHING, Tensor, wrap_known
from .autocast import casts
from .autocast_lists import POLICIES
from .codegen import PROMOTE_PAIR, PROMOTE_SCALAR
from .dispatcher import compile_op
from .facts import formula_parameters
from .namespace import aten
from .observer import HOOK, event_id, is_recorded, open_stretch, tap
from .overriding import NobodyAnswers, method_of_mode
from .registry import Op
from .schema import as_given
from .state import THREAD

# Ops that are made of others here but have kernels in PyTorch: a mode gets the whole op.
WHOLE_FAMILIES = ("_foreach_", "_fused_", "_amp_", "bartlett_", "blackman_", "hamming_", "hann_", "kaiser_")
WHOLE = frozenset({
    "__ilshift__", "__irshift__", "_addmm_activation", "_embedding_bag_backward", "_is_all_true", "_is_any_true",
    "_local_scalar_dense", "_native_multi_head_attention", "_transformer_encoder_layer_fwd", "allclose", "arange",
    "as_strided_", "channel_shuffle", "cholesky_solve", "conj_physical_", "detach", "detach_", "empty", "empty_like",
    "empty_permuted", "empty_strided", "equal", "eye", "fft_fftfreq", "fft_rfftfreq", "full", "full_like",
    "is_same_size", "is_set_to", "isnan", "lift_fresh", "linspace", "logspace",
    "masked_scatter_backward", "new_empty", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "normal", "ones", "ones_like", "polygamma_", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "range", "resize_", "resize_as_", "scalar_tensor",
    "slice_inverse", "squeeze_", "t_", "transpose_", "tril_indices", "triu_indices", "unsqueeze_", "zeros",
    "zeros_like"})


# Those of them that have gradients, which come from their parts; and those that only change a tensor's geometry.
BY_PARTS = frozenset({"_addmm_activation", "channel_shuffle", "cholesky_solve", "conj_physical_",
                      "masked_scatter_backward", "polygamma_"})
TURNING = frozenset({"as_strided_", "squeeze_", "t_", "transpose_", "unsqueeze_"})


def is_whole(op: Op) -> bool:
    """Whether an op that is made of others here has a kernel in PyTorch."""
    return op.name in WHOLE or op.name.startswith(WHOLE_FAMILIES)


class _Thread(threading.local):
    """A thread's modes, innermost last, and whether the op that asks next was already passed on."""

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.skip = False
        self.traced = False  # whether the trace runs the next op that asks, and whether it is running one
        self.inner = False
        self.off = 0  # how often asking the arguments' classes was turned off
        self.made: Any = None
        self.kept: Any = None


MINE = _Thread()
# One entry for each mode that is active in any thread, and one for each tensor whose class takes ops over.
ACTIVE: list[Any] = []
LIVING: set[weakref.ref[Tensor]] = set()
# Set by `torch.ops`: the overload that stands for an op there.
OVERLOAD_OF: list[Callable[[Op, bool, bool], Any]] = []

MODE_EVENT = event_id("PythonDispatchMode", "op")
CLASS_EVENT = event_id("PythonSubclass", "op")


class _Tap:
    """Passes ops to the thread's innermost mode, or to the classes of their arguments."""

    under: Any = None  # the execution trace, if there is one

    def takes(self) -> bool:
        """Whether the op that asks is passed on; if there may be arguments of such classes, they must be checked."""
        mine = MINE
        if mine.inner or mine.skip:
            mine.inner = mine.skip = False
        elif mine.modes or (LIVING and not mine.off):
            return True
        mine.traced = self.under is not None and self.under.takes()
        return mine.traced

    def run(self, op: Op, inplace: bool, arguments: dict[str, Any]) -> Any:
        """Run an op whose turn it is."""
        if MINE.traced:
            MINE.traced, MINE.inner = False, True
            try:
                return self.under.run(op, inplace, arguments)
            finally:
                MINE.inner = False
        function = compile_op(op, inplace)
        tensors = tensors_in(arguments.values())
        classes = asked(tensors) if LIVING and not MINE.off else []
        if not MINE.modes and not classes:
            return self.undisturbed(function, arguments)
        if op.composite is not None and op.namespace == "aten" and not is_whole(op):
            return self.undisturbed(function, arguments)
        if HOOK["AUTOCAST"] and op.key in POLICIES and not inplace and casts(arguments.values()):
            # Its arguments are cast first; then it asks again.
            return self.undisturbed(function, arguments)
        with _Shown(op, function, arguments, MODE_EVENT if MINE.modes else CLASS_EVENT, self.under) as shown:
            shown.result = self.answered(op, inplace, arguments, tensors, classes)
            # Lists of tensors are tuples to the program, and lists to the code that answers.
            return tuple(shown.result) if type(shown.result) is list else shown.result

    def answered(self, op: Op, inplace: bool, arguments: dict[str, Any], tensors: list[Tensor],
                 classes: list[Tensor]) -> Any:
        """The result returned for an op, with the history that the op gives it."""
        if op.namespace != "aten":
            definition = getattr(op.composite, "__self__", None)
            if definition is None or inplace:
                return self.ask(op, inplace, arguments, classes)
            return definition.answered(list(arguments.values()), lambda: self.ask(op, inplace, arguments, classes))
        state = THREAD.state
        if state.grad and op.composite is not None and any(one.requires_grad for one in tensors):
            if op.name in TURNING:
                return self.turned(op, arguments, classes)
            if op.name in BY_PARTS or op.name.startswith("_foreach_"):
                return self.answered_by_parts(op, arguments, tensors, classes)
        recorded = state.grad and bool(op.formulas(inplace)) and any(one.requires_grad for one in tensors)
        if recorded and inplace:
            check_inplace(tensors[0])
            MINE.kept = aten.clone(tensors[0]) if needs_old_value(op) else None
        version = tensors[0]._version if inplace else 0
        enabled, state.grad = state.grad, False
        try:
            made = self.ask(op, inplace, arguments, classes)
        finally:
            state.grad = enabled
        if made is None and op.schema.returns:
            return None  # there is nothing to have a history
        if inplace:
            made = tensors[0]
        if not recorded:
            if inplace and made._version == version:  # otherwise the class has changed its memory with an op itself
                bump(made)
            return made
        MINE.made = made
        try:
            with self.hidden():  # ops follow the histories of views
                delivered = _delivering(op, inplace)(**arguments)
        finally:
            MINE.made = MINE.kept = None
        return delivered if inplace else with_history(made, delivered, tensors)

    def turned(self, op: Op, arguments: dict[str, Any], classes: list[Tensor]) -> Any:
        """A tensor becomes a view of itself: its history is that of a twin, which is on the same memory."""
        tensor, *others = arguments.values()
        check_inplace(tensor)
        twin = wrap_known(tensor._a)
        twin._rg, twin._edge = tensor._rg, edge(tensor)
        with self.hidden():
            compile_op(op)(twin, *others)
        self.without_history(op, arguments, classes)
        tensor._rg, tensor._edge = twin._rg, twin._edge
        return tensor

    def answered_by_parts(self, op: Op, arguments: dict[str, Any], tensors: list[Tensor],
                          classes: list[Tensor]) -> Any:
        """The result returned for an op whose gradient is that of its parts: they run too, and give the history."""
        function = compile_op(op)
        if op.name.endswith("_"):
            return self.undisturbed(function, arguments)  # a change in place must not be made twice
        made = self.without_history(op, arguments, classes)
        with self.hidden():
            delivered = function(**arguments)
        return with_history(made, delivered, tensors)

    def without_history(self, op: Op, arguments: dict[str, Any], classes: list[Tensor]) -> Any:
        """What a mode or a class answers, below autograd."""
        state = THREAD.state
        enabled, state.grad = state.grad, False
        try:
            return self.ask(op, False, arguments, classes)
        finally:
            state.grad = enabled

    @staticmethod
    def hidden() -> DisableTorchDispatch:
        """A context for a function that is one op in PyTorch, although it is made of ops here."""
        return DisableTorchDispatch(modes=True)

    @staticmethod
    def undisturbed(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call an op's function, which must not ask again."""
        MINE.skip = True
        try:
            return function(**arguments)
        finally:
            MINE.skip = False

    def ask(self, op: Op, inplace: bool, arguments: dict[str, Any], classes: list[Tensor]) -> Any:
        """Let the innermost mode answer, then the arguments' classes; ops that a mode calls go to the next one."""
        values = dict(arguments)
        # An argument of the op itself may also be called `out`.
        out = values.pop("out") if len(values) > len(op.schema.arguments) else None
        args, kwargs = as_given(op.schema, values.values())
        args = tuple(list(one) if isinstance(one, list) else one for one in args)  # indices are a class of lists here
        if "pin_memory" in kwargs and kwargs.get("device") is None and not tensors_in(args):
            pinned = kwargs.pop("pin_memory")  # new memory: PyTorch's functions say where, and that last
            kwargs.update(device=THREAD.state.default_device or CPU, pin_memory=pinned)
        if out is not None:
            kwargs["out"] = out
        THREAD.state.exposed += 1
        if not OVERLOAD_OF:
            importlib.import_module(f"{__name__.partition('.')[0]}.ops")  # nobody has asked for it before
        scalar = op.scalar_overload is not None and len(args) > 1 and not isinstance(args[1], Tensor)
        function, types = OVERLOAD_OF[0](op, inplace, scalar), tuple(type(one) for one in classes)
        refused: list[str] = []
        if MINE.modes:
            mode = MINE.modes.pop()
            try:
                rule = rule_of(function, type(mode))
                result = (method_of_mode(mode, "__torch_dispatch__")(function, types, args, kwargs) if rule is None
                          else rule(mode, function, types, args, kwargs))
            finally:
                MINE.modes.append(mode)
            if result is not NotImplemented:
                return fitting(op, result)
            refused.append(f"mode object {mode!r}")
        for one in classes:
            rule = rule_of(function, type(one))
            result = (type(one).__torch_dispatch__(function, types, args, kwargs) if rule is None
                      else rule(type(one), function, types, args, kwargs))
            if result is not NotImplemented:
                return fitting(op, result)
            refused.append(f"tensor subclass {type(one)!r}")
        listed = "".join(f"\n  - {one}" for one in refused)
        raise NobodyAnswers(f"Multiple dispatch failed for 'torch._ops.{function}'; all __torch_dispatch__ handlers "
                            f"returned NotImplemented:\n{listed}")

    def enter(self, event: int, seq: int, given: Any, *graph_node: Any) -> Any:
        """Spans that are not ops mean nothing to a mode."""
        return None if self.under is None else self.under.enter(event, seq, given, *graph_node)


TAP = _Tap()


def fitting(op: Op, result: Any) -> Any:
    """An answer, if it is of the kinds that the op returns."""
    kinds = op.schema.returns
    if not kinds or not kinds[0].startswith("Tensor"):
        return result
    if kinds[0].endswith("[]"):
        if not isinstance(result, (list, tuple)):
            raise RuntimeError(f"Unable to cast Python instance of type {type(result)} to C++ type '?': {op} returns a "
                               "list of tensors")
        return result
    if len(kinds) > 1 and not isinstance(result, (list, tuple)):
        raise RuntimeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence': {op} returns "
                           "several tensors")
    for kind, one in zip(kinds, result if len(kinds) > 1 else (result,)):
        if kind.startswith("Tensor") and one is not None and not isinstance(one, Tensor):
            raise RuntimeError(f"Unable to cast {one} to Tensor")
    return result


class _Shown:
    """While a recorder or an execution trace is active: records the op, and in it the Python code that answers."""

    __slots__ = ("events", "noted", "result", "stretches")

    def __init__(self, op: Op, function: Any, arguments: dict[str, Any], event: int, trace: Any) -> None:
        self.stretches: list[Any] = []
        self.noted: list[Any] = []
        self.result: Any = None
        if trace is None and not is_recorded():
            return
        values = list(arguments.values())[:len(op.schema.arguments)]
        cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
        scalar = "id_scalar_" in cells and len(values) > 1 and not isinstance(values[1], Tensor)
        described = cells["describe_"].cell_contents[0](*values) if HOOK["DESCRIBE"] else None
        state = THREAD.state
        seq = state.seq if state.grad and op.schema.tensors else -1
        self.events = (event, cells["id_scalar_" if scalar else "id_"].cell_contents)
        if trace is not None:
            self.noted = [trace.enter(self.events[1], seq, values), trace.enter(event, -1, values)]
        self.stretches = [open_stretch(described, seq), open_stretch(described, -1)]

    def __enter__(self) -> _Shown:
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        for event, stretch in zip(self.events if self.stretches else (), reversed(self.stretches)):
            stretch.end(event)
        for one in reversed(self.noted):
            if one is not None:
                one.leave(self.result, kind is not None)


def rule_of(function: Any, kind: type) -> Any:
    """What a program has registered for its op and a class in place of the class's `__torch_dispatch__`."""
    definition = function._definition
    return None if definition is None else definition.rules.get(kind)


def asked(tensors: list[Tensor]) -> list[Tensor]:
    """One tensor of each class that takes ops over, subclasses before their bases."""
    found: list[Tensor] = []
    for tensor in tensors:
        kind = type(tensor)
        if kind in DISPATCHING and all(type(one) is not kind for one in found):
            place = next((i for i, one in enumerate(found) if issubclass(kind, type(one))), len(found))
            found.insert(place, tensor)
    return found


def needs_old_value(op: Op) -> bool:
    """Whether a formula of an op needs the old value of its first argument."""
    return any("self" in formula_parameters(formula) for formula in op.grad.values())


def with_history(made: Any, delivered: Any, arguments: list[Tensor]) -> Any:
    """A class's answer, with the history that was recorded for it."""
    several = isinstance(made, (tuple, list))
    answers, recorded = (made, delivered) if several else ((made,), (delivered,))
    results = [_following(one, other, arguments) for one, other in zip(answers, recorded, strict=True)]
    node = next((one._edge[0] for one in recorded if isinstance(one, Tensor) and one._edge is not None), None)
    for name in () if node is None else node.saved_names:
        saved = getattr(node, name)
        for one in results:
            if type(saved) is tuple and len(saved) == 3 and isinstance(one, Tensor) and saved[0] is one._a:
                # One without a gradient holds no node, so that it can be kept itself, as in PyTorch.
                setattr(node, name, (detached(one) if one.requires_grad else one, one.shared(), one._version))
    return type(made)(results) if several else results[0]


def _following(made: Any, delivered: Any, arguments: list[Tensor]) -> Any:
    if not isinstance(made, Tensor) or not delivered.requires_grad:
        return made
    if made._edge is not None or any(made is one for one in arguments):
        made = detached(made)
    made._rg, made._edge = delivered._rg, delivered._edge
    if delivered._of is not None:
        made._of, made._st = delivered._of, delivered._st
    return made


def watch(tensor: Tensor) -> None:
    """Ask about ops as long as this tensor, whose class takes them over, is alive."""
    LIVING.add(weakref.ref(tensor, _gone))
    tap(TAP, "dispatch")


def _gone(reference: weakref.ref[Tensor]) -> None:
    LIVING.discard(reference)
    if not LIVING and not ACTIVE:
        tap(None, "dispatch")


def of_watch(reference: weakref.ref[Tensor]) -> bool:
    """Whether a weak reference is one of `watch`."""
    return reference.__callback__ is _gone


class DisableTorchDispatch:
    """Inside, classes of arguments are not asked; with `modes`, neither are modes."""

    def __init__(self, modes: bool = False) -> None:
        self.hidden: list[Any] | None = [] if modes else None

    def __enter__(self) -> None:
        MINE.off += 1
        if self.hidden is not None:
            self.hidden, MINE.modes = MINE.modes, self.hidden

    def __exit__(self, *exc: object) -> None:
        MINE.off -= 1
        if self.hidden is not None:
            self.hidden, MINE.modes = MINE.modes, self.hidden


def tensors_in(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [one for one in value if isinstance(one, Tensor)]
    return found


def _deliver(*values: Any) -> Any:
    """Takes the place of the kernel if a mode has already done its work."""
    made = MINE.made
    return [one._a for one in made] if isinstance(made, (tuple, list)) else made._a


def _as_it_is(array: Any) -> Any:
    return array


def _as_they_are(first: Any, second: Any) -> Any:
    return first, second


class _Plans:
    """Leaves numbers unchanged."""

    def get(self, key: Any) -> Callable[[Any], Any]:
        """The use of a number of a type beside an array."""
        return _as_it_is


# Conversion of two operands to one dtype, which is not needed for a kernel that is not called.
OF_TWO = (*PROMOTE_PAIR.values(), *PROMOTE_SCALAR.values())
_DELIVERING: dict[tuple[Op, bool], Callable[..., Any]] = {}


def _delivering(op: Op, inplace: bool) -> Callable[..., Any]:
    """The op's function with `_deliver` as its kernel."""
    found = _DELIVERING.get((op, inplace))
    if found is None:
        made: Any = compile_op(op, inplace)
        if hasattr(made, "__face__"):
            made = made.__wrapped__  # the form that does not ask overriding objects
        cells = tuple(CellType(_deliver) if name in ("kernel_", "kernel_full_") else cell
                      for name, cell in zip(made.__code__.co_freevars, made.__closure__, strict=True))
        # It has a namespace of its own: there is nothing left to observe, no new memory and no cast.
        space = {**HOOK, **dict.fromkeys(OF_TWO, _as_they_are), "OBSERVING": False, "ALLOCATED": None,
                 "AUTOCAST": False, "NUMBER_PLANS": _Plans(), "WIDE_PLANS": _Plans(), "promote_list": _as_it_is,
                 "to_float": _as_it_is, "device_kernel": lambda *where: _deliver,
                 "original": lambda tensor: MINE.kept}
        copy = FunctionType(made.__code__, space, made.__name__, made.__defaults__, cells)
        copy.__kwdefaults__ = made.__kwdefaults__
        found = _DELIVERING[op, inplace] = copy
    return found


def enter(mode: Any) -> None:
    """From now on this thread's ops go to a mode."""
    tap(TAP, "dispatch")
    ACTIVE.append(mode)
    MINE.modes.append(mode)


def leave() -> None:
    """End what `enter` began."""
    MINE.modes.pop()
    ACTIVE.pop()
    if not ACTIVE and not LIVING:
        tap(None, "dispatch")

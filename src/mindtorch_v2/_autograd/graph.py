"""The autograd graph: nodes, the edges between them, and saved tensors."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy import ndarray

from .._backends.cpu.memory import copied_as
from .._backends.cpu.providers import direct
from .._backends.geometry import is_dense
from .._backends.sparse import SparseArray
from .._dispatch.namespace import aten
from .._dispatch.native import WALK
from .._dispatch.observer import HOOK
from .._dispatch.state import THREAD
from .._dtype import FROM_NUMPY, dtype
from .._memory_format import contiguous_format
from .._shape import Size
from .._storage import Shared
from .._tensor import DISPATCHING, VIEW_EDGE, Extras, Tensor, alias, is_differentiable_dtype, wrap, wrap_known
from .._warn import warn_once

new = object.__new__
Edge = tuple["Node", int]


class _Released:
    def __repr__(self) -> str:
        return "<released>"


RELEASED = _Released()
SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class NodeHooks:
    """Callbacks on a node; few nodes have any."""

    __slots__ = ("capture", "post", "pre", "tensor_pre")

    def __init__(self) -> None:
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        # By output number: hooks of the tensor itself, then a tensor that wants `.grad` (retain_grad).
        self.tensor_pre: dict[int, dict[int, Callable[..., Any]]] = {}
        self.capture: dict[int, weakref.ref[Tensor]] = {}

    def see_gradients(self) -> bool:
        """Whether the program gets gradients into its hands; a node with packed saved tensors has hooks, but none of
        these."""
        return bool(self.pre or self.post or self.tensor_pre or self.capture)


class InputMetadata(NamedTuple):
    """The properties of the gradients that a node gets."""

    shape: Size
    dtype: dtype | None
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class Node:
    """A step of the backward computation.

    `edges` holds `(node, output number)` per differentiable input, or None; `meta` holds `(shape, dtype)` per
    output of the forward op, which is what incoming gradients must match.
    """

    __slots__ = ("__weakref__", "edges", "hooks", "meta", "notes", "seq")
    edges: tuple[Edge | None, ...]
    seq: int
    meta: tuple[Any, ...]
    hooks: NodeHooks | None
    saved_names: tuple[str, ...] = ()
    recorded_by: Any = None  # the op whose class this is
    event_ids: tuple[int, int, type[Node]] | None = None  # the ids under which a profile shows nodes of this class
    full_name = ""  # if it differs from the class's name
    may_run_user_code = True  # besides hooks of the node
    needs_gradients = True  # whether it is skipped if no gradient has come

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """Gradients of the inputs from gradients of the outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no backward formula")

    def release(self) -> None:
        """Drop saved tensors; a second backward then raises."""
        for name in self.saved_names:
            setattr(self, name, RELEASED)

    def map_saved(self, function: Callable[[Any, int | None], Any]) -> None:
        """Replace what was saved, for pack hooks; the function also gets the number of the output that it may be."""
        for name in self.saved_names:
            setattr(self, name, function(getattr(self, name), int(name.removeprefix("v_result") or 0)
                                         if name.startswith("v_result") else None))

    def name(self) -> str:
        """The node's name, as profiles show it."""
        return self.full_name or type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that receive this node's results."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        if not hasattr(self, "notes"):
            self.notes: dict[Any, Any] = {}
        return self.notes

    def _sequence_nr(self) -> int:
        return self.seq

    @property
    def _register_hook_dict(self) -> dict[int, Callable[..., Any]]:
        """The hooks that run after this node, by number."""
        return self.ensure_hooks().post

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The runtime makes nodes itself, without this."""
        if cls is Node:
            raise TypeError("Can't instantiate abstract class Node")
        raise TypeError(f"cannot create '{cls.__name__}' instances")

    def __call__(self, *grads: Any) -> Any:
        """Run the node by itself; returns the gradients of its inputs, a single one not in a tuple."""
        if len(grads) != len(self.meta):
            raise TypeError(f"expected {len(self.meta)} arguments, got {len(grads)} instead")
        for number, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"argument {number} is not a Variable")
        results = self.apply(*grads)
        return results[0] if len(results) == 1 else results

    @property
    def _input_metadata(self) -> list[InputMetadata]:
        """The properties that incoming gradients must have."""
        return [InputMetadata(Size(shape), FROM_NUMPY.get(kind)) for shape, kind in self.meta]

    def ensure_hooks(self) -> NodeHooks:
        """This node's hooks, made when first needed."""
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran."""
        return RemovableHandle(self.ensure_hooks().post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs."""
        return RemovableHandle(self.ensure_hooks().pre, fn)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            from . import saved_attributes  # imported late: it needs this module, and few programs use it

            try:
                return saved_attributes.find(self, name)
            except KeyError:
                pass
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        self.seq = sequence_nr

    @property
    def requires_grad(self) -> bool:
        """Whether gradients go through."""
        return True

    def __dir__(self) -> list[str]:
        from . import saved_attributes

        names = saved_attributes.names_of_slots(type(self))
        raw = [f"_raw_saved_{name}" for name, slot in names.items() if slot in self.saved_names]
        return [*super().__dir__(), *[f"_saved_{name}" for name in names], *raw]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class RemovableHandle:
    """Removes a hook; also a context manager."""

    next_id = 0

    def __init__(self, hooks: dict[int, Any], fn: Callable[..., Any] | None = None, *, extra_dict: Any = None) -> None:
        self.hooks_ref = hooks
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dicts = (() if extra_dict is None else tuple(extra_dict) if isinstance(extra_dict, (list, tuple))
                            else (extra_dict,))
        if fn is not None:
            hooks[self.id] = fn

    def hooks_dict_ref(self) -> dict[int, Any]:
        """The table that holds the hook."""
        return self.hooks_ref

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        for entries in (self.hooks_ref, *self.extra_dicts):
            entries.pop(self.id, None)

    def __reduce__(self) -> Any:
        # A copy removes the hook from a table that was copied with it, such as that of a module.
        return RemovableHandle, (OrderedDict(),), (self.hooks_ref, self.id, self.extra_dicts)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.hooks_ref, self.id, self.extra_dicts = state[0] or {}, state[1], tuple(*state[2:3])
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


# AccumulateGrad nodes run before anything else that is ready, as in PyTorch.
LAST = 2**62


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes. The edge of a leaf holds the leaf, which its node does not."""

    node: Node
    output_nr: int
    ownership_token: Any = None


class AccumulateGrad(Node):
    """The end of every path: adds the gradient into a leaf's `.grad`."""

    __slots__ = ("reference",)
    reference: weakref.ref[Tensor]
    full_name = "torch::autograd::AccumulateGrad"
    edges = ()
    seq = LAST

    @property
    def may_run_user_code(self) -> bool:  # type: ignore[override]
        """Whether the leaf has hooks that run after accumulation."""
        variable = self.reference()
        return variable is not None and variable._ag is not None and bool(variable._ag.post_hooks)

    @property
    def variable(self) -> Tensor | None:
        """The leaf, or None if nothing holds it any more."""
        return self.reference()

    def _sequence_nr(self) -> int:
        return 2**64 - 1

    def apply(self, grad: Any = None, only_here: bool = False) -> tuple[Any, ...]:  # type: ignore[override]
        """Store or add the gradient. A first gradient that nothing else can see is taken over, not copied."""
        variable = self.reference()
        if variable is None:
            return ()
        extras = variable.extras()
        if grad is None:
            pass  # hooks are called anyway
        elif extras.grad is None:
            mine = only_here or type(grad) in DISPATCHING  # a class makes its answer for the caller
            state = THREAD.state
            if mine and not state.grad and (suits(grad._a, variable._a) or state.any_layout):
                extras.grad = aten.detach(grad)
            elif type(grad._a) is SparseArray:
                extras.grad = aten.clone(grad)
            else:
                extras.grad = laid_out_as(variable, grad)
        elif type(extras.grad._a) is SparseArray and type(grad._a) is not SparseArray:
            extras.grad = aten.add(grad, extras.grad)
        elif THREAD.state.grad:
            extras.grad = aten.add(extras.grad, grad)
            warn_of_layout(extras.grad, variable)
        else:
            if extras.grad._a.strides != variable._a.strides:
                warn_of_layout(extras.grad, variable)
            aten.add_(extras.grad, grad)
        if extras.post_hooks:
            for hook in tuple(extras.post_hooks.values()):
                made = hook(variable)
                if made is None or made is variable:
                    continue
                if not isinstance(made, Tensor):
                    raise TypeError(f"expected Variable, but hook returned '{type(made).__name__}'")
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        return ()


@direct("suits")
def suits(array: Any, leaf: Any) -> bool:
    """Whether a leaf may take over a gradient: it has the leaf's memory order, or is row-major if the leaf has gaps."""
    if type(array) is SparseArray or type(leaf) is SparseArray:
        return array.strides == leaf.strides
    if not is_dense(leaf):
        return array.flags.c_contiguous
    return all(have == want if extent != 1 else have != 0
               for have, want, extent in zip(array.strides, leaf.strides, array.shape))


def warn_of_layout(grad: Tensor, variable: Tensor) -> None:
    """Warn once if a gradient has another memory order than its leaf: adding it takes longer, but is correct."""
    if type(grad._a) is SparseArray or type(variable._a) is SparseArray:
        return
    if grad.dtype is variable.dtype and not THREAD.state.any_layout and not suits(grad._a, variable._a):
        warn_once("grad and param do not obey the gradient layout contract. This is not an error, but may impair "
                  f"performance.\ngrad.sizes() = {list(grad.shape)}, strides() = {list(grad.stride())}\n"
                  f"param.sizes() = {list(variable.shape)}, strides() = {list(variable.stride())}")


def laid_out_as(variable: Tensor, grad: Tensor) -> Tensor:
    """A copy of a gradient in the memory order of its leaf, or in row-major order if that has gaps."""
    array = variable._a
    if type(array) is SparseArray or not is_dense(array):
        return aten.clone(grad, memory_format=contiguous_format)
    if (type(grad) is Tensor and type(grad._a) is ndarray and type(array) is ndarray and HOOK["TAP"] is None
            and not THREAD.state.grad):
        # The work of the ops below, without what they do for a program that calls them.
        made = wrap(copied_as(grad._a, array))
        made.shared().version = 1  # it was written to
        return made
    steps = tuple(s // array.dtype.itemsize for s in array.strides)
    return aten.copy_(aten.new_empty_strided(grad, array.shape, steps), grad)


def as_leaf(tensor: Tensor) -> Tensor:
    """A new tensor, now one to differentiate by; programs may not call `requires_grad_` inside a transform."""
    tensor.requires_grad = True
    return tensor


def leaf_edge(tensor: Tensor) -> Edge:
    """The edge to a leaf's accumulator, made once. The accumulator refers to the leaf weakly, so there is no cycle."""
    extras = tensor._ag
    if extras is None:
        extras = tensor.extras()
    found = extras.accumulator
    if found is None:
        node = new(AccumulateGrad)
        node.reference = weakref.ref(tensor)
        node.hooks = None
        node.meta = ((tensor._a.shape, tensor._a.dtype),)
        if hasattr(extras, "grad_dtype"):
            kind = extras.grad_dtype
            node.meta = ((tensor._a.shape, None if kind is None else kind.np),)
        found = extras.accumulator = (node, 0)
    return found


def edge(tensor: Tensor) -> Edge | None:
    """Where this tensor's gradient goes, or None."""
    if tensor._of is not None:
        found = VIEW_EDGE[0](tensor)
        if found is not None:
            return found
    elif tensor._edge is not None:
        return tensor._edge
    return leaf_edge(tensor) if tensor._rg else None


# -- saved tensors -------------------------------------------------------------------------------------------------


class Packed:
    """A saved tensor after a user's pack hook. The hook keeps its values; this keeps where its gradient goes."""

    __slots__ = ("history", "is_result", "unpack", "value")

    def __init__(self, value: Any, unpack_hook: Callable[[Any], Any], history: Edge | None, is_result: bool) -> None:
        self.value = value
        self.unpack = unpack_hook
        self.history = history
        self.is_result = is_result  # whether it is a result of the node that saved it, which is its history


def save(tensor: Any) -> Any:
    """What a node keeps of a tensor: the tensor and its version, so that a later in-place change is noticed."""
    if isinstance(tensor, Tensor):
        return (tensor, 0 if tensor._st is None else tensor._st.version)
    return (tensor, -1)


def save_list(tensors: Any) -> Any:
    """`save` for a list of tensors."""
    return [save(t) for t in tensors]


def save_result(tensor: Tensor) -> Any:
    """Like `save` for an output: keeps its array and what it shares, because the node would keep itself alive."""
    shared = tensor.shared()
    return (tensor._a, shared, shared.version)


def detached(tensor: Tensor) -> Tensor:
    """`tensor.detach()` as the tensor's class does it, also if no op is recorded."""
    state = THREAD.state
    enabled, state.grad = state.grad, False
    try:
        return aten.detach(tensor)
    finally:
        state.grad = enabled


def result_tensor(saved: Any) -> Tensor:
    """A tensor without history for what `save_result` kept; if its class takes ops over, a tensor of that class."""
    if isinstance(saved[0], Tensor):
        return detached(saved[0])
    tensor = wrap_known(saved[0])
    tensor._st = saved[1]
    return tensor


def with_history(tensor: Tensor, history: Edge | None) -> Tensor:
    """The result of an unpack hook, with the history of the saved tensor, which a second derivative needs."""
    made = detached(tensor) if type(tensor) in DISPATCHING else alias(tensor)
    if history is not None:
        made._rg = True
        if isinstance(history[0], AccumulateGrad):
            made.extras().accumulator = history
        else:
            made._edge = history
    return made


def unpack(node: Node, saved: Any) -> Any:
    """The tensor behind what `save` returned."""
    if saved is RELEASED:
        raise RuntimeError(SECOND_BACKWARD)
    if type(saved) is list:
        return [unpack(node, item) for item in saved]
    if type(saved) is Packed:
        if THREAD.state.walk is not None:
            THREAD.state.walk.current = node  # the hook may ask for it
        tensor = saved.unpack(saved.value)
        if not isinstance(tensor, Tensor):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                            f"{type(tensor).__name__}")
        if saved.history is None and not saved.is_result and not tensor._rg:
            return tensor
        return with_history(tensor, saved.history)
    tensor, version = saved if len(saved) == 2 else (result_tensor(saved), saved[2])
    if version >= 0 and tensor._version != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[torch.{type_name(tensor)} {list(tensor._a.shape)}]{origin(tensor, node, saved)} is at version "
            f"{tensor._version}; expected version {version} instead. Hint: enable anomaly detection to find "
            "the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    return tensor


def unpack_result(node: Node, saved: Any, number: int = 0) -> Any:
    """`unpack` for an output, with its history put back if the backward itself is being recorded."""
    tensor = unpack(node, saved)
    if THREAD.state.grad and tensor._edge is None:
        tensor._rg = True
        tensor._edge = (node, number)
    return tensor


def type_name(tensor: Tensor) -> str:
    """`FloatTensor`, as PyTorch's older error messages call it."""
    names = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
             "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}
    return names.get(tensor.dtype.name, tensor.dtype.name.capitalize()) + "Tensor"


def origin(tensor: Tensor, node: Node, saved: Any) -> str:
    """The origin of a saved tensor, in words: a result of the node that saved it; nothing for a leaf."""
    made = node if len(saved) != 2 else None if tensor._edge is None else tensor._edge[0]
    return "" if made is None else (
        f", which is output {tensor.output_nr} of {made.name().rpartition('Backward')[0] or made.name()},")


def apply_pack_hooks(node: Node) -> None:
    """Run the innermost pack hook on everything a fresh node saved."""
    pack, unpack_hook = THREAD.state.pack_hooks[-1]
    node.map_saved(lambda saved, number: packed(saved, pack, unpack_hook, None if number is None else (node, number)))
    if node.hooks is None:
        node.hooks = NodeHooks()  # unpacking will run the user's code


def packed(saved: Any, pack: Callable[[Any], Any], unpack_hook: Callable[[Any], Any],
           made_by: Edge | None = None) -> Any:
    """What `save` returned, with its tensors packed. A result shows its history to the hook, and only to it.

    This is not a closure that calls itself: that would be a cycle, and the hooks, with all their references, would live
    until the next garbage collection.
    """
    if type(saved) is list:
        return [packed(item, pack, unpack_hook, made_by) for item in saved]
    if type(saved) is tuple and (len(saved) == 3 or isinstance(saved[0], Tensor)):
        is_result = len(saved) == 3
        given = result_tensor(saved) if is_result else saved[0]
        enabled = THREAD.state.grad
        THREAD.state.grad = False
        version = given._version
        try:
            history = None if is_result else edge(given)
            if is_result and made_by is not None and is_differentiable_dtype(given._a.dtype):
                given._rg, given._edge = True, made_by
            kept = Packed(pack(given), unpack_hook, history, is_result)
        finally:
            THREAD.state.grad = enabled
            if is_result:
                given._rg, given._edge = False, None  # the node would keep itself alive
        if given._version != version:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
                               "pack hook cannot be modified by in-place operations as this can lead to unexpected "
                               "side-effects.")
        return kept
    return saved


if WALK is not None:  # the twins try first, and call the functions here for rare cases
    WALK.prepare_graph({"Extras": Extras, "Shared": Shared, "Tensor": Tensor, "leaf_edge": leaf_edge, "unpack": unpack})
    globals().update(leaf_edge=WALK.leaf_edge, unpack=WALK.unpack)

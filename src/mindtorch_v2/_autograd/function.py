"""Custom differentiable functions: `autograd.Function`."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch.describe import describe_all
from .._dispatch.namespace import aten
from .._dispatch.observer import HOOK, event_id, span
from .._dispatch.state import THREAD
from .._dtype import FLOAT, FROM_NUMPY
from .._tensor import LEVELS, Tensor, alias
from .anomaly import AnomalyState, note
from .forward import keep_tangent, set_fwd_grad_enabled, unpack_dual
from .graph import RELEASED, Node, apply_pack_hooks, as_leaf, edge, save, save_result, unpack
from .inplace import CUSTOM, MANY, bump, check_inplace, rebase
from .saved_attributes import several


class _Call:
    """What the runtime keeps about one call of a custom function."""

    __slots__ = (
        "dirty",
        "for_forward",
        "in_jvp",
        "materialize",
        "materialize_non_diff",
        "needs_input_grad",
        "node",
        "non_differentiable",
        "outputs",
        "pending",
        "plain",
        "saved",
    )

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.dirty: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize = True
        self.materialize_non_diff = True
        self.plain: frozenset[int] = frozenset()  # numbers of the outputs that are not tensors and get None
        self.pending: tuple[Any, ...] = ()
        self.for_forward: tuple[Any, ...] = ()
        self.in_jvp = False  # while `jvp` runs, `saved_tensors` are those of `save_for_forward`
        self.saved: Any = None
        self.outputs: dict[int, int] = {}  # saved position -> number of the output
        self.node: weakref.ref[FunctionNode] | None = None


# What `ctx` answers as the node that it belongs to does.
OF_NODE = frozenset(("_input_metadata", "_raw_saved_tensors", "_register_hook_dict", "_sequence_nr",
                     "_set_sequence_nr", "metadata", "name", "next_functions", "register_hook", "register_prehook",
                     "requires_grad"))


class FunctionCtx:
    """The `ctx` of a custom function; its attributes belong to the user, ours are behind one name."""

    _mindtorch_call: _Call

    def __init__(self, call: _Call | None = None) -> None:
        self._mindtorch_call = _Call(()) if call is None else call

    def __getattr__(self, name: str) -> Any:
        if name in OF_NODE:
            node = self._mindtorch_call.node
            found = None if node is None else node()
            if found is not None:
                return getattr(found, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of forward: whether its gradient is needed."""
        return self._mindtorch_call.needs_input_grad

    @needs_input_grad.setter
    def needs_input_grad(self, value: tuple[bool, ...]) -> None:
        self._mindtorch_call.needs_input_grad = value

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the backward, with version checks."""
        self._mindtorch_call.pending = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        for number, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"save_for_forward can only save variables, but argument {number} is of type "
                                f"{type(tensor).__name__}")
        self._mindtorch_call.for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; inside `jvp`, what `save_for_forward` kept."""
        call = self._mindtorch_call
        if call.in_jvp:  # without their tangents, which `jvp` gets separately
            return tuple(unpack_dual(t).primal if isinstance(t, Tensor) else t for t in call.for_forward)
        if call.saved is None:
            return tuple(call.pending)
        node = call.node() if call.node is not None else None
        items: list[Any] = unpack(node, call.saved)  # type: ignore[arg-type]  # without its node an error names none
        if node is not None:  # else the results are gone, and what is left of them has no history
            for i, number in call.outputs.items():
                if items[i]._edge is None:
                    items[i]._rg, items[i]._edge = True, (node, number)
        return tuple(items)

    @property
    def to_save(self) -> tuple[Any, ...] | None:
        """The arguments of `save_for_backward` in this forward; None before and after."""
        return self._mindtorch_call.pending or None

    @property
    def saved_for_forward(self) -> tuple[Any, ...] | None:
        """The arguments of `save_for_forward`."""
        return self._mindtorch_call.for_forward or None

    @property
    def dirty_tensors(self) -> tuple[Any, ...] | None:
        """The arguments of `mark_dirty` in this forward; None before and after."""
        return None if self._mindtorch_call.node is not None else self._mindtorch_call.dirty or None

    @property
    def non_differentiable(self) -> tuple[Any, ...] | None:
        """The arguments of `mark_non_differentiable` in this forward; None before and after."""
        return None if self._mindtorch_call.node is not None else self._mindtorch_call.non_differentiable or None

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """`saved_tensors` under its old name."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _materialize_non_diff_grads(self) -> bool:
        """Whether outputs without a gradient get zeros."""
        return self._mindtorch_call.materialize_non_diff

    @_materialize_non_diff_grads.setter
    def _materialize_non_diff_grads(self, value: bool) -> None:
        self._mindtorch_call.materialize_non_diff = value

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare inputs that forward changed in place."""
        _refuse_others(tensors, "mark_dirty can only accept variables, but argument {0} is of type {1}")
        self._mindtorch_call.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare outputs without gradients."""
        _refuse_others(tensors, "mark_non_differentiable only accepts variable arguments, but got {1}")
        self._mindtorch_call.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing output gradients arrive as zeros (the default) or as None."""
        if not isinstance(value, bool):
            raise TypeError("set_materialize_grads received an invalid combination of arguments - expected a bool, but "
                            f"got {type(value).__name__}")
        self._mindtorch_call.materialize = value


def _refuse_others(tensors: tuple[Any, ...], text: str) -> None:
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise RuntimeError(text.format(number, type(tensor).__name__))


class FunctionNode(Node):
    """The node of a custom function. It has the attributes of `ctx`: both share one dictionary."""

    __slots__ = ("__dict__", "ctx", "positions")
    needs_gradients = False
    function: type[Function]
    ctx: FunctionCtx
    positions: tuple[int, ...]  # of the tensor arguments among all arguments

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    def __getattr__(self, name: str) -> Any:
        if name in ("ctx", "positions") or name.startswith("__"):
            raise AttributeError(name)
        if name in OF_NODE:
            raise AttributeError(name)
        return getattr(self.ctx, name)

    @property
    def _raw_saved_tensors(self) -> Any:
        """The arguments of `save_for_backward`, before unpacking."""
        return several(self, self.ctx._mindtorch_call.saved)

    def release(self) -> None:
        """Drop saved tensors; a second backward then raises."""
        call = self.ctx._mindtorch_call
        call.saved = RELEASED
        call.pending = ()

    def map_saved(self, function: Callable[[Any, int | None], Any]) -> None:
        """Replace what was saved, for pack hooks."""
        call = self.ctx._mindtorch_call
        if call.saved is not None:
            call.saved = [function(one, call.outputs.get(i)) for i, one in enumerate(call.saved)]

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """Run the user's backward and match its results with the tensor inputs."""
        call = self.ctx._mindtorch_call
        if call.materialize:
            where = next((g.device for g in grads if g is not None), None)
            grads = tuple(aten.zeros(meta[0], dtype=FROM_NUMPY[meta[1]], device=where)
                          if g is None and i not in call.plain else g
                          for i, (g, meta) in enumerate(zip(grads, self.meta)))
        function = type(self).function
        if function.vjp is not Function.vjp and function.backward is not Function.backward:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                               "should only implement one of them.")
        backward = function.vjp if function.vjp is not Function.vjp else function.backward
        results = backward(self.ctx, *grads)
        if not isinstance(results, tuple):
            if isinstance(results, list):
                raise RuntimeError("expected Variable or None (got list)")
            results = (results,)
        count = len(call.needs_input_grad)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got "
                f"{len(results)})"
            )
        for i, result in enumerate(results):
            if result is not None and i not in self.positions:
                raise RuntimeError(f"function {self.name()} returned a gradient different than None at position "
                                   f"{i + 1}, but the corresponding forward input was not a Variable")
        made = tuple(results[i] for i in self.positions)
        for target, result in zip(self.edges, made):
            if isinstance(result, Tensor) and result._a.dtype.kind == "c" and target is not None:
                wanted = target[0].meta[target[1]][1]
                if wanted is not None and wanted.kind != "c":
                    raise RuntimeError("Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                                       "grad_is_complex) to be true, but got false.")
        return made


EMPTY: dict[str, Any] = {
    "_input_metadata": (), "_raw_saved_tensors": (), "dirty_tensors": None, "metadata": {}, "needs_input_grad": None,
    "next_functions": (), "non_differentiable": None, "requires_grad": True, "saved_for_forward": None,
    "saved_tensors": (), "saved_variables": (), "to_save": None}


class Function:
    """A differentiable step with a hand-written backward.

    >>> import mindtorch_v2 as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = torch.ones(1, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor([2.])
    """

    generate_vmap_rule = False
    _node: type[FunctionNode]
    _ctx: type[FunctionCtx]
    _backward_cls: type[FunctionNode]  # PyTorch's name for it
    _read_forward: tuple[Callable[..., Any], inspect.Signature | None]  # forward, and its signature

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you "
                      "should invoke them on the class itself. Instantiating an autograd function will raise an error "
                      "in a future version.", DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Make forward and "
                           "backward static methods and call the class's `apply`.")

    def __getattr__(self, name: str) -> Any:
        if name in EMPTY:  # what `ctx` and the node have: an instance is neither
            return type(EMPTY[name])() if isinstance(EMPTY[name], dict) else EMPTY[name]
        if name in ("_register_hook_dict", "_sequence_nr", "name", "register_hook", "register_prehook"):
            raise RuntimeError(f"Attribute '{name}' is invalid for an instance of autograd.Function: call the class's "
                               "`apply` and look at the grad_fn of the result.")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = f"{cls.__name__}Backward"
        cls._node = cls._backward_cls = type(name, (FunctionNode,), {"__slots__": (), "function": cls,
                                                                      "_forward_cls": cls})
        cls._ctx = type(name, (FunctionCtx,), {"_forward_cls": cls})

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Define how the function works on batches, for `torch.vmap`."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap static method "
                                  "or set generate_vmap_rule=True.")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; the first argument is `ctx` unless `setup_context` is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Fill `ctx` after forward, if forward does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs from the gradients of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangents of the outputs from the tangents of the inputs."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record this function in the graph."""
        described = describe_all(tuple(filter(_is_shown, args))) if HOOK["DESCRIBE"] else None
        with span(event_id(cls.__name__, "op"), THREAD.state.seq, described, args):
            return _apply(cls, args, kwargs)


def _is_shown(value: Any) -> bool:
    """Whether a profile shows an argument: tensors, numbers and sequences of numbers."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, (bool, int, float, complex)) for item in value)
    return value is None or isinstance(value, (Tensor, bool, int, float, complex))


Function._node = Function._backward_cls = FunctionNode
Function._ctx = FunctionCtx
NO_TENSOR = np.dtype(np.float32)  # in the description of an output that is not a tensor


def _check_transforms(cls: type[Function], state: Any) -> None:
    """What `torch.func` asks of a function that is called inside its transforms."""
    name, more = cls.__name__, "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
    if cls.setup_context is Function.setup_context:
        raise RuntimeError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, "
                           f"...), it must override the setup_context staticmethod. {more}")
    if not state.vmaps:
        return
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden "
                           "vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap "
                           f"staticmethod to avoid ambiguity. {more}")
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(f"You tried to vmap over {name}, but it does not have vmap support. Please override and "
                           f"implement the vmap staticmethod or set generate_vmap_rule=True. {more}")


def _apply(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    state = THREAD.state
    if state.transforms:
        _check_transforms(cls, state)
    if kwargs:
        args, kwargs = _by_position(cls, args, kwargs)
    call = _Call(tuple(isinstance(a, Tensor) and a.requires_grad for a in args))
    ctx = cls._ctx(call)
    recording = state.grad and any(call.needs_input_grad)
    positions = tuple(i for i, a in enumerate(args) if isinstance(a, Tensor))
    # Edges are taken before forward runs, because forward may change its inputs in place.
    edges = tuple(edge(args[i]) for i in positions) if recording else ()
    tangents = None
    if LEVELS:
        tangents = tuple(unpack_dual(a).tangent if isinstance(a, Tensor) else None for a in args)
    before, state.grad = state.grad, False
    try:
        if LEVELS:
            with set_fwd_grad_enabled(False):  # its `jvp` computes the tangents
                result = _forward(cls, ctx, args, kwargs)
        else:
            result = _forward(cls, ctx, args, kwargs)
    finally:
        state.grad = before
    given = result if isinstance(result, tuple) else (result,)  # other containers are returned unchanged
    outputs = tuple(_fresh_output(o, args, call, recording) for o in given)
    for changed in call.dirty:
        bump(changed)
        if recording and not any(changed is one for one in args):
            raise RuntimeError("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have "
                               "been mutated should be passed to ctx.mark_dirty().")
        if recording and not any(changed is one for one in outputs):
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. "
                               "The inputs that are modified inplace must all be outputs of the Function.")
    if recording:
        node = object.__new__(cls._node)
        node.ctx, node.edges, node.positions, node.hooks = ctx, edges, positions, None
        node.__dict__ = ctx.__dict__
        call.node = weakref.ref(node)
        _record(node, call, args, outputs, state)
        if AnomalyState.enabled:
            note(node)
    else:
        for one in outputs:
            if isinstance(one, Tensor) and one._of is not None and not one._of[2] and not any(one is a for a in args):
                one._of = (*one._of[:2], CUSTOM)
    if tangents is not None and any(tangent is not None for tangent in tangents):
        outputs = _with_tangents(cls, ctx, args, tangents, outputs)
    return outputs if isinstance(result, tuple) else outputs[0]


def _forward(cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run forward and fill `ctx`; returns the result."""
    if cls.setup_context is Function.setup_context:
        return cls.forward(ctx, *args, **kwargs)
    result = cls.forward(*args, **kwargs)
    cls.setup_context(ctx, _with_defaults(cls, args, kwargs), result)
    return result


def _fresh_output(output: Any, inputs: tuple[Any, ...], call: _Call, recording: bool) -> Any:
    """Make an alias of an input that is returned unchanged, so that the input's own history stays.

    If nothing is recorded, the alias of an input that requires grad is not a view: it would have the input's history.
    """
    if isinstance(output, Tensor) and any(output is i for i in inputs) and not any(output is d for d in call.dirty):
        view = alias(output) if type(output) is Tensor else _alias_of_class(output)
        if any(output is one for one in call.non_differentiable):
            call.non_differentiable += (view,)
            return view
        if not recording and output.requires_grad:
            return view
        view._of = (output if output._of is None else output._of[0], view.shared().version, CUSTOM)
        return view
    return output


def _alias_of_class(tensor: Tensor) -> Tensor:
    """`alias` for a tensor of a subclass, which may answer the call itself."""
    state = THREAD.state
    enabled, state.grad = state.grad, False
    try:
        kind: Any = type(tensor)
        return kind.__torch_function__(Tensor.view_as, (kind,), (tensor, tensor))  # type: ignore[attr-defined]
    finally:
        state.grad = enabled


def _by_position(cls: type[Function], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put named arguments at their positions: gradients are assigned by position."""
    signature = inspect.signature(cls.forward)
    if cls.setup_context is not Function.setup_context:
        bound = signature.bind(*args, **kwargs)
        return bound.args, bound.kwargs
    bound = signature.bind(None, *args, **kwargs)  # the first is `ctx`
    return bound.args[1:], bound.kwargs


def _with_defaults(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of forward, with its defaults for those not given."""
    read = cls.__dict__.get("_read_forward")
    if read is None or read[0] is not cls.forward:  # once per class: reading a signature takes longer than a small op
        cls._read_forward = read = (cls.forward, _signature(cls.forward))
    if read[1] is None:
        return args
    bound = read[1].bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _signature(forward: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of forward if a call may omit or name an argument, otherwise None."""
    try:
        signature = inspect.signature(forward)
    except ValueError:  # a callable without a signature has no visible defaults
        return None
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    fixed = all(p.kind in plain and p.default is p.empty for p in signature.parameters.values())
    return None if fixed else signature


def _with_tangents(cls: type[Function], ctx: Any, args: tuple[Any, ...], tangents: tuple[Any, ...],
                   outputs: tuple[Any, ...]) -> Any:
    """The outputs with the tangents from the function's own `jvp`."""
    call = ctx._mindtorch_call
    if call.materialize:
        tangents = tuple(aten.zeros_like(a) if t is None and isinstance(a, Tensor) else t
                         for a, t in zip(args, tangents))
    versions = [None if t is None else t._version for t in tangents]
    call.in_jvp = True
    try:
        made = cls.jvp(ctx, *tangents)
    finally:
        call.in_jvp = False
    made = made if isinstance(made, tuple) else (made,)
    if len(made) != len(outputs):
        raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} "
                           f"but got {len(made)}): {cls.__name__}")
    for number, (output, tangent) in enumerate(zip(outputs, made)):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}.")
        if isinstance(output, Tensor) and tangent is not None:
            if tangent._a.shape != output._a.shape:
                raise RuntimeError("Trying to set a forward gradient that has a different size than that of the "
                                   f"original Tensor: {list(tangent._a.shape)} for {list(output._a.shape)}, from the "
                                   f"jvp of {cls.__name__}")
            _check_tangent(output, tangent, args, tangents, versions, call)
    return tuple(o if t is None or not isinstance(o, Tensor) else keep_tangent(o, t) for o, t in zip(outputs, made))


def _check_tangent(output: Tensor, tangent: Tensor, args: tuple[Any, ...], tangents: tuple[Any, ...],
                   versions: list[int | None], call: _Call) -> None:
    """Check that a tangent is changed in place, or is a view, exactly where its output is."""
    for argument, given, version in zip(args, tangents, versions):
        if not isinstance(argument, Tensor) or given is None:
            continue
        if output is argument and any(output is one for one in call.dirty):
            if tangent is not given or given._version == version:
                raise RuntimeError("An inplace custom Function is not modifying the forward mode gradients inplace. If "
                                   "the forward is modifying an input inplace, then the jvp function must modify the "
                                   "corresponding gradient inplace.")
        elif output._of is not None and output._of[0] is (argument if argument._of is None else argument._of[0]):
            if tangent._of is None:
                raise RuntimeError("A custom Function's forward is returning a view (or an input as-is) but the jvp is "
                                   "not returning a view.")
            if tangent._of[0] is not (given if given._of is None else given._of[0]):
                of = "the given grad input" if given._of is None else "the same base as the given grad input"
                raise RuntimeError("A custom Function is returning a view but the jvp is not returning a view of "
                                   f"{of}.")


def _record(node: FunctionNode, call: _Call, args: tuple[Any, ...], outputs: tuple[Any, ...], state: Any) -> None:
    node.seq = state.seq
    state.seq += 1
    node.meta = tuple((o._a.shape, o._a.dtype) if isinstance(o, Tensor) else ((), NO_TENSOR) for o in outputs)
    call.plain = frozenset(i for i, o in enumerate(outputs) if not isinstance(o, Tensor) or (
        not call.materialize_non_diff and any(o is t for t in call.non_differentiable)))
    for tensor in call.dirty:
        if tensor._rg and tensor.grad_fn is None:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        check_inplace(tensor)
        if tensor._of is not None and len(outputs) > 1:
            raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your "
                               "Function cannot return more than one Tensor. Clone the view before, or let one "
                               "Function make the change and another the other results.")
    pure = node.__dict__.get("_is_pure_view", False)  # its results are views that autograd can follow
    if pure and (len(outputs) > 1 or len(node.positions) > 1):
        raise RuntimeError("Pure view custom Function can only have one input Tensor and one output Tensor. Open an "
                           "issue if you need to support more.")
    saved: list[Any] = []
    for i, item in enumerate(call.pending):
        if item is not None and not isinstance(item, Tensor):  # without a history anything may be kept
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type "
                            f"{type(item).__name__}")
        position = next((n for n, o in enumerate(outputs) if o is item), None)
        if isinstance(item, Tensor) and position is not None and not any(item is d for d in args):
            saved.append(save_result(item))
            if FROM_NUMPY[item._a.dtype].category >= FLOAT and not any(item is t for t in call.non_differentiable):
                call.outputs[i] = position
        else:
            saved.append(save(item))
    call.saved = saved
    call.pending = ()
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor) or any(output is t for t in call.non_differentiable):
            continue
        if FROM_NUMPY[output._a.dtype].category < FLOAT:
            continue
        if any(output is t for t in call.dirty):
            rebase(output, node)
        else:
            output._rg = True
            output._edge = (node, number)
            if output._of is not None:
                output._of = (*output._of[:2], 0 if pure else MANY if len(outputs) > 1 else CUSTOM)
    if state.pack_hooks:
        apply_pack_hooks(node)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a backward that cannot itself be differentiated: a second backward raises."""

    @functools.wraps(function)
    def inside(ctx: Any, *grads: Any) -> Any:
        state = THREAD.state
        before, state.grad = state.grad, False
        try:
            results = function(ctx, *grads)
        finally:
            state.grad = before
        if not state.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return results
        listed = results if isinstance(results, tuple) else (results,)
        failing = DelayedError("trying to differentiate twice a function that was marked with @once_differentiable",
                               len(listed))
        # New leaves, as in PyTorch: the inputs of the results are not visible from here.
        return failing(*(as_leaf(aten.detach(r)) if isinstance(r, Tensor) else r for r in listed))

    return inside


class Error(Node):
    """A step that cannot be differentiated: it raises when a gradient arrives."""

    __slots__ = ("reason",)
    full_name = "torch::autograd::Error"
    reason: str

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """Raises."""
        raise RuntimeError(self.reason)


def mark_underivable(tensor: Tensor, name: str) -> None:
    """Give the result of an op without a derivative a history that raises when a gradient arrives."""
    node = object.__new__(Error)
    node.edges, node.hooks, node.seq = (edge(tensor),), None, THREAD.state.seq
    THREAD.state.seq += 1
    node.meta = ((tensor._a.shape, tensor._a.dtype),)
    node.reason = f"derivative for {name} is not implemented"
    tensor._rg, tensor._edge = True, (node, 0)


class DelayedError:
    """Called with tensors, returns them so that a backward through them fails with a message."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.reason = msg

    def __call__(self, *tensors: Any) -> Any:
        node = object.__new__(Error)
        node.edges = tuple(edge(t) if isinstance(t, Tensor) else None for t in tensors)
        node.seq = THREAD.state.seq
        THREAD.state.seq += 1
        node.meta = tuple((t._a.shape, t._a.dtype) if isinstance(t, Tensor) else ((), NO_TENSOR) for t in tensors)
        node.hooks = None
        node.reason = self.reason
        marked = tuple(_behind(node, i, t) for i, t in enumerate(tensors))
        return marked[0] if len(marked) == 1 else marked


class UndefinedGrad(Node):
    """A step that passes its input on but no gradient back."""

    __slots__ = ()
    full_name = "torch::autograd::UndefinedGradBackward"

    def __new__(cls) -> Any:
        return object.__new__(cls)

    def __init__(self) -> None:
        self.hooks = None

    def __call__(self, tensor: Tensor) -> Tensor:
        """The tensor behind this step."""
        self.edges = (edge(tensor),)
        self.seq = THREAD.state.seq
        THREAD.state.seq += 1
        self.meta = ((tensor._a.shape, tensor._a.dtype),)
        marked = _behind(self, 0, tensor)
        assert isinstance(marked, Tensor)
        return marked

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """No gradient."""
        return (None,)


def _behind(node: Node, number: int, tensor: Any) -> Any:
    """A tensor with the same memory whose history begins with a node."""
    if not isinstance(tensor, Tensor):
        return tensor
    marked = alias(tensor)
    marked._rg = True
    marked._edge = (node, number)
    return marked

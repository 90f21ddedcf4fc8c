"""Hooks of modules: where they are kept, those that apply to all modules, and how backward hooks get into the graph.

`Module.__call__` goes straight to `forward` as long as no hook exists anywhere. `HookTable.__setitem__` is the one
place through which a hook can come into being (registration, copying and unpickling included), so it raises the flag.
"""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..._autograd.graph import Node, RemovableHandle, edge, new
from ..._autograd.inplace import CUSTOM
from ..._dispatch.describe import describe_all
from ..._dispatch.dispatcher import zeros_for
from ..._dispatch.module_flag import Flag
from ..._dispatch.observer import HOOK, event_id, span
from ..._dispatch.state import THREAD
from ..._tensor import Tensor, alias

Hook = Callable[..., Any]
IDENTITY_EVENT = event_id("BackwardHookFunction", "op")


class HookTable(OrderedDict):
    """Hooks by id, in the order in which they run."""

    def __setitem__(self, key: Any, value: Any) -> None:
        Flag.raised = Flag.hooks = True
        super().__setitem__(key, value)

    def __reduce__(self) -> Any:
        # In a file it is the plain dictionary that PyTorch has there; `Module.__setstate__` takes it back.
        return (OrderedDict, (), None, None, iter(self.items()))

    def __deepcopy__(self, memo: dict[int, Any]) -> HookTable:
        made = memo[id(self)] = HookTable()
        for key, hook in self.items():
            made[key] = copy.deepcopy(hook, memo)
        return made


class Handle(RemovableHandle):
    """Removes a hook from its table and from the tables that say how it is called."""

    def __init__(self, table: Any, hook: Hook | None = None, extra: Sequence[Any] = (), prepend: bool = False) -> None:
        super().__init__(table, hook, extra_dict=tuple(extra))
        for flags in self.extra_dicts:
            flags[self.id] = True
        if prepend:
            table.move_to_end(self.id, last=False)


class GlobalHooks:
    """Hooks that run for every module."""

    forward_pre = HookTable()
    forward = HookTable()
    forward_with_kwargs: ClassVar[dict[int, bool]] = OrderedDict()
    forward_always_called: ClassVar[dict[int, bool]] = OrderedDict()
    backward_pre = HookTable()
    backward = HookTable()
    is_full_backward: bool | None = None
    # Called as `hook(module, name, value)` when something is assigned to a module.
    buffer_registration: ClassVar[dict[int, Hook]] = OrderedDict()
    module_registration: ClassVar[dict[int, Hook]] = OrderedDict()
    parameter_registration: ClassVar[dict[int, Hook]] = OrderedDict()


def run_registration_hooks(hooks: dict[int, Hook], module: Any, name: str, value: Any) -> Any:
    """What registration hooks make of a value that is assigned to a module."""
    for hook in tuple(hooks.values()):
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, buffer)` for every buffer that is registered; it may return another one."""
    return Handle(GlobalHooks.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, submodule)` for every submodule that is registered; it may return another one."""
    return Handle(GlobalHooks.module_registration, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, parameter)` for every parameter that is registered; it may return another one."""
    return Handle(GlobalHooks.parameter_registration, hook)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; it may return other arguments."""
    return Handle(GlobalHooks.forward_pre, hook)


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; it may return another output."""
    extra = [GlobalHooks.forward_with_kwargs] * with_kwargs + [GlobalHooks.forward_always_called] * always_call
    return Handle(GlobalHooks.forward, hook, extra)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return Handle(GlobalHooks.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    return _backward_hook(hook, full=True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The old backward hook, which sees only the last node of a module's forward."""
    return _backward_hook(hook, full=False)


def _backward_hook(hook: Hook, full: bool) -> RemovableHandle:
    if GlobalHooks.is_full_backward is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
                           "Please use only one of them.")
    GlobalHooks.is_full_backward = full
    return Handle(GlobalHooks.backward, hook)


# -- backward hooks ------------------------------------------------------------------------------------------------


class BackwardHookFunctionBackward(Node):
    """An identity in the graph at a module's border, where its gradients can be seen and replaced."""

    __slots__ = ()

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """The gradients as they came, or zeros; hooks on the node do the work."""
        return zeros_for(self, grads) if any(grad is None for grad in grads) else grads


def through_identity(values: Sequence[Any]) -> tuple[tuple[Any, ...], Node | None, list[int]]:
    """The values with all tensors led through one identity node, that node, and the positions of the tensors."""
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    tensors = [values[i] for i in positions]
    state = THREAD.state
    if not state.grad or not any(t.requires_grad for t in tensors):
        return tuple(values), None, []
    described = describe_all(tuple(tensors)) if HOOK["DESCRIBE"] else None
    with span(IDENTITY_EVENT, state.seq, described, tuple(tensors)):
        led, node = _identity(values, positions, tensors)
    return led, node, positions


def _identity(values: Sequence[Any], positions: list[int], tensors: list[Any]) -> tuple[tuple[Any, ...], Node]:
    state = THREAD.state
    node = new(BackwardHookFunctionBackward)
    node.edges = tuple(edge(t) if t.requires_grad else None for t in tensors)
    node.meta = tuple((t._a.shape, t._a.dtype) for t in tensors)
    node.hooks = None
    node.seq = state.seq
    state.seq += 1
    led = list(values)
    for number, (position, tensor) in enumerate(zip(positions, tensors, strict=True)):
        twin = alias(tensor)
        if node.edges[number] is not None:
            twin._rg = True
            twin._edge = (node, number)
            twin._of = (tensor if tensor._of is None else tensor._of[0], twin.shared().version, CUSTOM)
        led[position] = twin
    return tuple(led), node


def spread(grads: Sequence[Any], positions: Sequence[int], size: int) -> tuple[Any, ...]:
    """Gradients of the tensors at `positions` as a tuple over all arguments, None elsewhere."""
    full: list[Any] = [None] * size
    for position, grad in zip(positions, grads, strict=True):
        full[position] = grad
    return tuple(full)


class BackwardHooks:
    """One call of a module with full backward hooks: an identity node before its forward and one after."""

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_count = -1
        self.watches_inputs = False

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, led through a node that runs the hooks once their gradients are known."""
        self.input_count = len(args)
        led, node, positions = through_identity(args)
        if node is not None:
            self.watches_inputs = True
            node.register_hook(lambda grads, _: self.inputs_done(grads, positions))
        return led

    def watch_outputs(self, output: Any) -> Any:
        """The output, led through a node that runs the pre-hooks."""
        values = output if isinstance(output, tuple) else (output,)
        led, node, positions = through_identity(values)
        size = len(values)  # all that the node may keep: the values themselves would live as long as the graph
        if node is not None:
            node.register_prehook(lambda grads: self.outputs_done(grads, positions, size))
        if not isinstance(output, tuple):
            return led[0]
        return led if type(output) is tuple else type(output)(*led)  # a named tuple stays one

    def inputs_done(self, grads: Sequence[Any], positions: list[int]) -> tuple[Any, ...] | None:
        """Run the hooks on `(grad_input, grad_output)`."""
        if self.grad_outputs is None:
            # The inputs are used outside the module only: nothing went through it.
            return None
        found = spread(grads, positions, self.input_count)
        for hook in self.hooks:
            replaced = hook(self.module, found, self.grad_outputs)
            if replaced is None:
                continue
            replaced = tuple(replaced) if isinstance(replaced, (tuple, list)) else (replaced,)
            if len(replaced) != len(found):
                raise RuntimeError("Backward hook returned an invalid number of grad_input, got "
                                   f"{len(replaced)}, but expected {len(found)}")
            found = replaced
        self.grad_outputs = None
        return tuple(found[i] for i in positions)

    def outputs_done(self, grads: Sequence[Any], positions: list[int], size: int) -> tuple[Any, ...]:
        """Run the pre-hooks on `grad_output`; the hooks too if no input will ever get a gradient."""
        found = spread(grads, positions, size)
        for hook in self.pre_hooks:
            replaced = hook(self.module, found)
            if replaced is None:
                continue
            replaced = tuple(replaced) if isinstance(replaced, (tuple, list)) else (replaced,)
            if len(replaced) != len(found):
                raise RuntimeError("Backward pre hook returned an invalid number of grad_output, got "
                                   f"{len(replaced)}, but expected {len(found)}")
            found = replaced
        self.grad_outputs = found
        if not self.watches_inputs:
            self.without_input_gradients()
        return tuple(found[i] for i in positions)

    def without_input_gradients(self) -> None:
        """Hooks still fire when no input requires grad; there is nothing they could replace."""
        if self.hooks:
            warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs "
                          "since no inputs require gradients. See "
                          "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                          "#torch.nn.Module.register_full_backward_hook for more details.", stacklevel=2)
        for hook in self.hooks:
            replaced = hook(self.module, (None,) * self.input_count, self.grad_outputs)
            if replaced is not None and not (isinstance(replaced, tuple) and all(g is None for g in replaced)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return "
                                   "None or None for all gradients.")
        self.grad_outputs = None


def what_plain_hooks_miss(inputs: Any, output: Any) -> str | None:
    """What old-style hooks, which see the last node of forward only, do not see of a module."""
    def tensors(value: Any) -> bool:
        return isinstance(value, Tensor) or (isinstance(value, tuple) and all(isinstance(v, Tensor) for v in value))

    for value, verb, part in ((output, "return", "grad_output"), (inputs, "take as input", "grad_input")):
        if not tensors(value):
            return (f"non-full backward hooks on a Module that does not {verb} a single Tensor or a tuple of Tensors "
                    f"is deprecated: this hook will be missing some of the {part}.")
    made = {one.grad_fn for one in (output if isinstance(output, tuple) else (output,))} - {None}
    if len(made) > 1:
        return ("a non-full backward hook when outputs are generated by different autograd Nodes is deprecated: this "
                "hook will be missing some grad_output.")
    given = {one.grad_fn for one in (inputs if isinstance(inputs, tuple) else (inputs,))} - {None}
    if made and given != {node for node, _ in made.pop().next_functions}:
        return ("a non-full backward hook when the forward contains multiple autograd Nodes is deprecated: this hook "
                "will be missing some grad_input.")
    return None


def attach_plain_backward_hooks(module: Any, hooks: Sequence[Hook], inputs: Any, output: Any) -> None:
    """Put old-style hooks on the node that made the module's (first) output."""
    missing = what_plain_hooks_miss(inputs, output)
    if missing is not None:
        warnings.warn(f"Using {missing} Please use register_full_backward_hook to get the documented behavior.",
                      FutureWarning, stacklevel=4)
    found = output
    while not isinstance(found, Tensor):
        if isinstance(found, dict):
            found = next((v for v in found.values() if isinstance(v, Tensor)), None)
        elif isinstance(found, (list, tuple)) and found:
            found = found[0]
        else:
            return
        if found is None:
            return
    node = found.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda grad_inputs, grad_outputs, hook=hook: hook(module, grad_inputs, grad_outputs))

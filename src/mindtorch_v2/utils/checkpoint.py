"""`torch.utils.checkpoint`: keep inputs instead of activations, and compute the activations again in backward."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._autograd.api import backward
from .._autograd.function import Function
from .._autograd.grad_mode import enable_grad, set_grad_enabled
from .._device import CPU
from .._dispatch.state import THREAD
from .._random import StreamStates, fork_rng, get_rng_state, set_rng_state
from .._tensor import Tensor
from ..amp.autocast_mode import renewed
from ..nn.modules.container import Sequential
from ._pytree import arg_tree_leaves
from ._recompute import CheckpointError, Frame, set_checkpoint_early_stop
from ._selective import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    _CachedTorchDispatchMode,  # noqa: F401  # found here in PyTorch
    _CachingTorchDispatchMode,  # noqa: F401
    create_selective_checkpoint_contexts,
)

REENTRANT_ADVICE = ("use_reentrant=False is recommended, but if you need to preserve the current default behavior, you "
                    "can pass use_reentrant=True. Refer to docs for more details on the differences between the two "
                    "variants.")
DETERMINISM_CHECKS = ("default", "none")
Streams = tuple[Tensor, StreamStates]  # the states of random streams: the CPU's, and the other devices'


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts, for forward and recomputation, that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """The kind of device whose random numbers are kept for arguments that are on the CPU."""

    _name = "cpu"

    @staticmethod
    def set_device_type(device: str = "cpu") -> None:
        """Set it."""
        DefaultDeviceType._name = device

    @staticmethod
    def get_device_type() -> str:
        """Get it."""
        return DefaultDeviceType._name


def _infer_device_type(*args: Any) -> str:
    """The kind of device of the arguments that are not on the CPU."""
    found = [one.device.type for one in arg_tree_leaves(*args) if isinstance(one, Tensor) and not one.is_cpu]
    if len(set(found)) > 1:
        warnings.warn("Tensor arguments, excluding CPU tensors, are detected on at least two types of devices, "
                      f"{sorted(set(found))}: the random state of {found[0]} alone is kept", stacklevel=2)
    return "cuda" if "cuda" in found else found[0] if found else DefaultDeviceType.get_device_type()


class _Debug:
    """Whether checkpoints note the ops of both runs; None leaves it to each."""

    override: bool | None = None


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Set whether checkpoints made inside note the ops of both runs, whatever their `debug` says."""
    before, _Debug.override = _Debug.override, enabled
    try:
        yield
    finally:
        _Debug.override = before


@contextlib.contextmanager
def _replayed(states: Streams | None) -> Iterator[None]:
    """Draw the forward's random numbers again, without moving the streams outside."""
    with fork_rng(enabled=states is not None):
        if states is not None:
            set_rng_state(states[0])
            states[1].go_on_from_here()
        yield


def _standing() -> Streams:
    """The states of the random streams. The CPU's is a tensor, as in PyTorch, so that a profile shows its memory."""
    return get_rng_state(), StreamStates(but=CPU)


def check_backward_validity(inputs: Any) -> None:
    """Warn when no gradient can come out."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs as fresh leaves on the same memory."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    made = []
    for value in inputs:
        if isinstance(value, Tensor):
            leaf = value.detach()
            leaf.requires_grad = value.requires_grad
            value = leaf
        made.append(value)
    return tuple(made)


class CheckpointFunction(Function):
    """The reentrant variant: a node whose backward runs the function again and a backward pass inside."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """The function without a graph."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = _standing() if preserve_rng_state else None
        ctx.autocast = renewed()
        ctx.tensor_places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.other_inputs = [None if isinstance(value, Tensor) else value for value in args]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_places))
        # The engine runs formulas without recording unless asked to; so does forward here.
        with set_grad_enabled(False):
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function again, with a graph, and backpropagate through that."""
        if THREAD.state.walk is not None and THREAD.state.walk.selective:
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                               "passing an `inputs` parameter to .backward(): use use_reentrant=False, or call "
                               ".backward() without `inputs`.")
        inputs = list(ctx.other_inputs)
        for position, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            inputs[position] = tensor
        leaves = detach_variable(tuple(inputs))
        with _replayed(ctx.rng_state), enable_grad(), ctx.autocast():
            outputs = ctx.run_function(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(output, grad) for output, grad in zip(outputs, grads, strict=True)
                 if isinstance(output, Tensor) and output.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(leaf.grad if isinstance(leaf, Tensor) else None for leaf in leaves))


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn, determinism_check: str = "default",
               debug: bool = False, early_stop: bool = True, **kwargs: Any) -> Any:
    """Call `function(*args)` without keeping what its backward needs; backward calls it again.

    >>> import mindtorch_v2 as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: (x * 3).exp().sum(), x, use_reentrant=False).backward()
    >>> bool((x.grad == 3 * torch.exp(torch.tensor(3.0))).all())
    True
    """
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
                      "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
                      + REENTRANT_ADVICE, stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in DETERMINISM_CHECKS:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM_CHECKS)}, but got {determinism_check}")
    log = None
    if debug if _Debug.override is None else _Debug.override:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        log = importlib.import_module("._checkpoint_log", __package__).CheckpointLog()
        context_fn = log.contexts
    forward_context, recompute_context = context_fn()
    if not THREAD.state.grad:
        with forward_context:
            return function(*args, **kwargs)
    state = _standing() if preserve else None
    autocast = renewed()

    def again(inputs: tuple[Any, ...]) -> None:
        with _replayed(state), autocast(), recompute_context:
            function(*inputs, **kwargs)

    frame = Frame(again, args, early_stop, determinism_check != "none", None if log is None else log.text)
    with frame.hooks(), forward_context:
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          **kwargs: Any) -> Any:
    """Run a chain of modules in `segments` pieces, all but the last of which are checkpointed."""
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
                      "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
                      + REENTRANT_ADVICE, stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if isinstance(functions, Sequential) else list(functions)

    def chain(some: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in some:
                value = step(value)
            return value

        return run

    size = len(steps) // segments
    cut = size * (segments - 1)
    for start in range(0, cut, size or 1):
        input = checkpoint(chain(steps[start:start + size]), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve)
    return chain(steps[cut:])(input)


__all__ = ["CheckpointError", "CheckpointFunction", "CheckpointPolicy", "SelectiveCheckpointContext",
           "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
           "detach_variable", "noop_context_fn", "set_checkpoint_early_stop"]


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices with random numbers of their own that arguments live on, and the states of these: none here."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Set the states that `get_device_states` has returned."""
    if list(devices):
        raise RuntimeError("set_device_states: this runtime has no device with random numbers of its own")

"""`Optimizer`: parameter groups, state, hooks and state dicts, common to all optimizers."""

from __future__ import annotations

import functools
import importlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, TypeAlias, TypeVar

from .._autograd.grad_mode import enable_grad, no_grad
from .._autograd.graph import RemovableHandle
from .._backends.base import device_of
from .._dispatch.namespace import aten
from .._dispatch.observer import HOOK, event_id, hush, span
from .._dtype import DefaultDtype, dtype, float32, float64
from .._tensor import Tensor
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from ._groups import _RequiredParameter, as_groups, check_packed, complete_group, fit_value, pack, required

__all__ = [
    "Optimizer", "ParamsT", "_RequiredParameter", "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook", "required",
]

F = TypeVar("F", bound=Callable[..., Any])
# What an optimizer is made of: parameters, groups of them, or parameters with names.
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
PACKAGE = __name__.partition(".")[0] + "."

_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_HOOK_TABLES = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return RemovableHandle(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return RemovableHandle(_global_optimizer_post_hooks, hook)


@functools.cache
def _step_event(cls: type) -> int:
    return event_id(f"Optimizer.step#{cls.__name__}.step", "scope_internal")


@functools.cache
def _zero_grad_event(cls: type) -> int:
    return event_id(f"Optimizer.zero_grad#{cls.__name__}.zero_grad", "scope_internal")


def _use_grad_for_differentiable(step: F) -> F:
    """For optimizers of other libraries: `step` records gradients if the optimizer is `differentiable`."""

    @functools.wraps(step)
    def stepping(self: Any, *args: Any, **kwargs: Any) -> Any:
        with enable_grad() if self.defaults["differentiable"] else no_grad():
            return step(self, *args, **kwargs)

    return stepping  # type: ignore[return-value]


def _default_to_fused_or_foreach(params: list[Tensor], differentiable: bool, use_fused: bool = False
                                 ) -> tuple[bool, bool]:
    """Whether PyTorch's optimizers would be fused, or treat parameters as lists, if nothing was asked for."""
    on_accelerator = bool(params) and not any(p is None or p.is_cpu or p.is_meta for p in params)
    fused = use_fused and not differentiable and on_accelerator and all(p.is_floating_point() for p in params)
    return fused, not differentiable and on_accelerator and not fused


@functools.cache
def foreach_types() -> list[type]:
    """The classes of parameters that are treated as lists without being asked for; others may have ops of their own."""
    return [Tensor, importlib.import_module("..nn.parameter", __package__).Parameter]


def __getattr__(name: str) -> Any:
    if name == "_foreach_supported_types":  # made when asked for, since it loads `torch.nn`
        return foreach_types()
    raise AttributeError(f"module 'torch.optim.optimizer' has no attribute '{name}'")


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices where parameters are treated as lists unless told otherwise."""
    return ["npu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The devices that have fused steps."""
    return ["cpu"]


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose steps could become part of a graph of device work."""
    return ["npu"]


def _get_value(x: Any) -> Any:
    """An option that may be a tensor of one element, as a Python number."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """An option that may be a tensor of one element, without dimensions."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _stack_if_compiling(x: Any) -> Any:
    """Numbers as they are: only a compiler wants them in one tensor."""
    return x


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """A decorator that changes nothing: steps are not compiled."""
    return lambda func: func


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    """The dtype of step counts and other single numbers in the state."""
    return float64 if DefaultDtype.value is float64 and not is_fused else float32


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put pairs of real numbers in place of complex parameters, and of what belongs to them, in these lists."""
    for index, parameter in enumerate(params):
        if parameter.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[index] = aten.view_as_real(tensors[index])


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Raise if there is no fused step for this parameter."""
    if not (p.dtype.is_floating_point and device_of(p._a).has_data):
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of supported devices: "
                           f"{_get_fused_kernels_supported_devices()} but {p.dtype} and {p.device.type}")


def _add_hook(table: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], first: bool) -> RemovableHandle:
    handle = RemovableHandle(table, hook)
    if first:
        table.move_to_end(handle.id, last=False)
    return handle


class Optimizer:
    """Base of all optimizers: holds parameters in groups, each with its options, and state for each parameter.

    A subclass passes its options' defaults to `__init__` and defines `step`.

    >>> import mindtorch_v2 as torch
    >>> weight = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.SGD([weight], lr=0.5)
    >>> (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0., 0.])
    """

    OptimizerPreHook: TypeAlias = Callable[[Any, Any, Any], Any]
    OptimizerPostHook: TypeAlias = Callable[[Any, Any, Any], None]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._patch_step_function()
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        for group in as_groups(params):
            self.add_param_group(group)

    def _patch_step_function(self) -> None:
        """What is not part of a pickled optimizer: hook tables and the wrapping of the class's `step`.

        Optimizers that wrap another one call this by its name in PyTorch, instead of `__init__`.
        """
        for table in _HOOK_TABLES:
            if table not in self.__dict__:
                setattr(self, table, OrderedDict())
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", False):
            wrapped = self.profile_hook_step(cls.step)
            wrapped.hooked = True  # type: ignore[attr-defined]
            cls.step = wrapped  # type: ignore[method-assign]

    def _accelerator_graph_capture_health_check(self) -> None:
        """Nothing to check: no device here captures graphs. Optimizers of other packages call this in `step`."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check

    # -- copying and printing --------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {option}: {_shown(group[option])}" for option in sorted(group) if option != "params"]
            lines.append("")
        if self.param_groups:
            lines.pop()
        return "\n".join([*lines, ")"])

    # -- hooks -----------------------------------------------------------------------------------------------------

    @staticmethod
    def profile_hook_step(func: F) -> F:
        """Wrap a `step` function: report it to the profiler and call the hooks around it."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            with span(_step_event(type(self))):  # type: ignore[arg-type]
                for hook in (*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
                    result = hook(self, args, kwargs)
                    if result is None:
                        continue
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(
                            f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                        )
                    args, kwargs = result
                # A closure is the user's, and so may be the class.
                own = len(args) == 1 and not kwargs and func.__module__.startswith(PACKAGE)
                quiet = hush() if own and HOOK["OBSERVING"] else None
                try:
                    outcome = func(*args, **kwargs)
                finally:
                    if quiet is not None:
                        quiet.resume()
                if "_opt_called" in self.__dict__:
                    # A learning rate schedule wants to know that steps come before its own.
                    self._opt_called = True
                for hook in (*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()):
                    hook(self, args, kwargs)
                if HOOK["STEPPED"] is not None:
                    self._optimizer_step_code()
                return outcome

        return wrapper  # type: ignore[return-value]

    def _optimizer_step_code(self) -> None:
        """Tell the profiler of a step that was made; calls of this are what shows it in a recording of calls."""
        stepped = HOOK["STEPPED"]
        if stepped is not None:
            stepped(self)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before a step; it may return new `(args, kwargs)`."""
        return _add_hook(self._optimizer_step_pre_hooks, hook, False)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after a step."""
        return _add_hook(self._optimizer_step_post_hooks, hook, False)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another one."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another state dict."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    # -- state dicts -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters numbered; its tensors are the optimizer's own."""
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        packed = pack(self.param_groups, self.state)
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            replaced = hook(self, packed)
            packed = packed if replaced is None else replaced
        return packed

    @no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and options from a state dict of an optimizer with the same groups."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved = deepcopy(state_dict["param_groups"])
        check_packed(self.param_groups, saved)
        owners = {
            number: parameter
            for group, saved_group in zip(self.param_groups, saved, strict=True)
            for number, parameter in zip(saved_group["params"], group["params"], strict=True)
        }
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                fitted = functools.partial(Optimizer._process_value_according_to_param_policy, owners[key],
                                           param_id=key, param_groups=state_dict["param_groups"])
                state[owners[key]] = fit_value(value, fitted)
            else:
                state[key] = value
        for group, saved_group in zip(self.param_groups, saved, strict=True):
            saved_group["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved_group:
                saved_group["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            hook(self)

    @staticmethod
    def _process_value_according_to_param_policy(param: Tensor, value: Tensor, param_id: int,
                                                 param_groups: list[dict[str, Any]], key: Any = None) -> Tensor:
        """A loaded tensor of the state, brought to its parameter's dtype and device.

        Step counts keep their dtype: in the parameter's they could be too coarse to count.
        """
        if key == "step":
            group = next(group for group in param_groups if param_id in group["params"])
            if group.get("capturable") or group.get("fused"):
                return aten.to(value, dtype=float32, device=param.device)
            return value
        if param.dtype.is_floating_point:
            return aten.to(value, dtype=param.dtype, device=param.device)
        return aten.to(value, device=param.device)

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> Any:
        """Lists of equal length, cut into groups in which the first list's tensors have one device and dtype."""
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    # -- use -------------------------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with `set_to_none=False` fill them with zeros."""
        with span(_zero_grad_event(type(self))):  # type: ignore[arg-type]
            kept = []
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    if set_to_none:
                        parameter.grad = None  # nothing here holds on to it, so that it is freed here and now
                        continue
                    grad = parameter.grad
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    kept.append((grad, group))
            together = [grad for grad, group in kept if group.get("foreach") or group.get("fused")]
            for grad, group in kept:
                if not (group.get("foreach") or group.get("fused")):
                    aten.zero_(grad)
            if together:
                aten._foreach_zero_(together)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters according to their gradients; every optimizer defines it."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, for example layers that are unfrozen later."""
        self.param_groups.append(complete_group(param_group, self.defaults, self.param_groups))


def run_closure(closure: Callable[[], Any] | None) -> Any:
    """The loss a closure computes, with recording switched on; None without a closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def _shown(value: Any) -> str:
    return format(value.item() if isinstance(value, Tensor) and not value.ndim else value)

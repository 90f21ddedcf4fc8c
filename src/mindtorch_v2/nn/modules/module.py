"""`Module`: the base of everything with parameters. Its parts: names (`_registry`), walking (`_tree`), saving
(`_state`), conversion (`_convert`); this file adds calling with hooks, and printing.
"""

from __future__ import annotations

import sys
import warnings
from types import ModuleType
from typing import Any, ClassVar

from ..._autograd.graph import RemovableHandle
from ..._compile import compile as compile_nothing
from ..._dispatch.module_flag import Flag
from ..._tensor import Tensor
from ._convert import Convert
from ._hooks import (
    BackwardHooks,
    GlobalHooks,
    Handle,
    Hook,
    attach_plain_backward_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state import EXTRA_STATE, State, _IncompatibleKeys

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_EXTRA_STATE_KEY_SUFFIX = EXTRA_STATE


def indented(text: str) -> str:
    """The text with all lines but the first moved two columns to the right."""
    return text.replace("\n", "\n  ")


def _addindent(s_: str, numSpaces: int) -> str:
    """The text with all lines but the first moved to the right: layers by others print themselves with it."""
    return s_.replace("\n", "\n" + " " * numSpaces)


class Module(State, Convert):
    """A piece of a model: parameters, buffers, submodules and a `forward`.

    >>> import mindtorch_v2 as torch
    >>> class Twice(torch.nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(torch.ones(2))
    tensor([2., 2.])
    """

    _may_run_user_code = False  # of a layer of this package: whether its forward calls functions that users gave it

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Flag.raised:
            watch = Flag.watch
            return self._call_impl(*args, **kwargs) if watch is None else watch(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if not (own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]
                or own["_backward_pre_hooks"] or GlobalHooks.forward or GlobalHooks.forward_pre
                or GlobalHooks.backward or GlobalHooks.backward_pre):
            return self.forward(*args, **kwargs)
        done: set[int] = set()
        result: Any = None
        try:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
            full, plain = self._backward_hooks_by_kind()
            pre = [*GlobalHooks.backward_pre.values(), *self._backward_pre_hooks.values()]
            border = BackwardHooks(self, full, pre) if full or pre else None
            if border is not None:
                args = border.watch_inputs(args)
            result = self.forward(*args, **kwargs)
            result = self._run_forward_hooks(args, kwargs, result, done)
            if border is not None:
                if not isinstance(result, (Tensor, tuple)):
                    warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of "
                                  f"Tensors but received {type(result)}", stacklevel=3)
                result = border.watch_outputs(result)
            if plain:
                attach_plain_backward_hooks(self, plain, args, result)
            return result
        except Exception:
            self._run_remaining_hooks(args, kwargs, result, done)
            raise

    def _run_forward_pre_hooks(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        for number, hook in (*GlobalHooks.forward_pre.items(), *self._forward_pre_hooks.items()):
            if number in self._forward_pre_hooks_with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                           f"but got {replaced}.")
                    args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _call_forward_hook(self, number: int, hook: Hook, args: Any, kwargs: Any, result: Any) -> Any:
        wants_kwargs = number in self._forward_hooks_with_kwargs or number in GlobalHooks.forward_with_kwargs
        replaced = hook(self, args, kwargs, result) if wants_kwargs else hook(self, args, result)
        return result if replaced is None else replaced

    def _run_forward_hooks(self, args: Any, kwargs: Any, result: Any, done: set[int]) -> Any:
        for number, hook in (*GlobalHooks.forward.items(), *self._forward_hooks.items()):
            done.add(number)
            result = self._call_forward_hook(number, hook, args, kwargs, result)
        return result

    def _run_remaining_hooks(self, args: Any, kwargs: Any, result: Any, done: set[int]) -> None:
        """After an exception: the hooks that asked to be called in any case and were not."""
        for number, hook in (*GlobalHooks.forward.items(), *self._forward_hooks.items()):
            always = number in self._forward_hooks_always_called or number in GlobalHooks.forward_always_called
            if not always or number in done:
                continue
            try:
                result = self._call_forward_hook(number, hook, args, kwargs, result)
            except Exception as error:
                # The error of forward is the one to raise; this one must not hide it.
                warnings.warn("module forward hook with ``always_call=True`` raised an exception that was silenced as "
                              f"another error was raised in forward: {error}", stacklevel=2)

    def _backward_hooks_by_kind(self) -> tuple[list[Hook], list[Hook]]:
        """`(full, old-style)` backward hooks of this module, global ones first."""
        full: list[Hook] = []
        plain: list[Hook] = []
        if GlobalHooks.backward:
            (full if GlobalHooks.is_full_backward else plain).extend(GlobalHooks.backward.values())
        if self._backward_hooks:
            (full if self._is_full_backward_hook else plain).extend(self._backward_hooks.values())
        return full, plain

    # -- registering hooks -----------------------------------------------------------------------------------------

    _backward_pre_hooks: Any
    _backward_hooks: Any
    _forward_hooks: Any
    _forward_hooks_with_kwargs: Any
    _forward_hooks_always_called: Any
    _forward_pre_hooks: Any
    _forward_pre_hooks_with_kwargs: Any

    def register_forward_pre_hook(self, hook: Hook, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, args)`, or `hook(module, args, kwargs)`, before forward; it may return new ones."""
        extra = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return Handle(self._forward_pre_hooks, hook, extra, prepend)

    def register_forward_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call `hook(module, args, output)`, or `hook(module, args, kwargs, output)`, after forward.

        It may return another output. With `always_call` it runs even if forward raised.
        """
        extra = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            extra.append(self._forward_hooks_always_called)
        return Handle(self._forward_hooks, hook, extra, prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward; it may return new gradients."""
        return Handle(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` after the module's backward; it may return new gradients."""
        self._choose_backward_kind(full=True)
        return Handle(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """The old backward hook: it sees only the last node of forward. Prefer `register_full_backward_hook`."""
        self._choose_backward_kind(full=False)
        return Handle(self._backward_hooks, hook)

    def _choose_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")
        self._is_full_backward_hook = full

    def _replicate_for_data_parallel(self) -> Any:
        """A copy that shares everything but owns no parameters: the caller adds them as plain tensors."""
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__ | {"_parameters": {}, "_buffers": self._buffers.copy(),
                                            "_modules": self._modules.copy(), "_is_replica": True}
        return replica

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Nothing but `torch.compile`'s warning: there is no compiler in this runtime."""
        compile_nothing(self, *args, **kwargs)

    # -- printing --------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What is printed between the parentheses besides submodules; to be overridden."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        return framed(self._get_name(), lines, children)


def framed(name: str, lines: list[str], children: list[str]) -> str:
    """`Name(...)`: on one line if there is one line and no children, else one item a line."""
    if not children and len(lines) <= 1:
        return f"{name}({''.join(lines)})"
    return f"{name}(\n  " + "\n  ".join([*lines, *children]) + "\n)"


class _ModuleFile(ModuleType):
    """This file as a module. PyTorch's names of the tables of hooks are those of `GlobalHooks`, to read and to set."""

    _places: ClassVar[dict[str, str]] = {
        "_global_backward_hooks": "backward", "_global_backward_pre_hooks": "backward_pre",
        "_global_forward_hooks": "forward", "_global_forward_pre_hooks": "forward_pre",
        "_global_forward_hooks_always_called": "forward_always_called",
        "_global_forward_hooks_with_kwargs": "forward_with_kwargs",
        "_global_buffer_registration_hooks": "buffer_registration",
        "_global_module_registration_hooks": "module_registration",
        "_global_parameter_registration_hooks": "parameter_registration",
        "_global_is_full_backward_hook": "is_full_backward",
    }

    def __getattr__(self, name: str) -> Any:
        place = self._places.get(name)
        if place is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(GlobalHooks, place)

    def __setattr__(self, name: str, value: Any) -> None:
        place = self._places.get(name)
        if place is None:
            super().__setattr__(name, value)
            return
        setattr(GlobalHooks, place, value)
        Flag.raised = Flag.hooks = True  # a table that is not a `HookTable` does not raise it when it gets a hook


sys.modules[__name__].__class__ = _ModuleFile


def _has_any_global_hook() -> bool:
    """Whether hooks run for every module."""
    return bool(GlobalHooks.backward_pre or GlobalHooks.backward or GlobalHooks.forward_pre or GlobalHooks.forward
                or GlobalHooks.forward_always_called or GlobalHooks.forward_with_kwargs)

"""`torch.utils.hooks`: the handle that takes a hook away again."""

from __future__ import annotations

import warnings
from typing import Any

from .._autograd.graph import RemovableHandle
from ..nn.modules._hooks import BackwardHooks


class BackwardHook(BackwardHooks):
    """Hooks on one call of a module: its inputs, then its outputs, pass through it."""

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        super().__init__(module, user_hooks, user_pre_hooks)

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments to call the module with."""
        return self.watch_inputs(args)

    def setup_output_hook(self, args: Any) -> Any:
        """The output that the module's caller gets."""
        return self.watch_outputs(args)


def unserializable_hook(f: Any) -> Any:
    """Mark a hook that may be lost when its tensor is saved, so that saving does not warn."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn if a tensor that is about to be saved has hooks that would be lost, unless they are marked."""
    accumulator = None if tensor._ag is None else tensor._ag.accumulator
    hooks = None if accumulator is None else accumulator[0].hooks
    for hook in [] if hooks is None else hooks.tensor_pre.get(0, {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized. Decorate it with "
                          "torch.utils.hooks.unserializable_hook if it need not be",
                          stacklevel=2)


__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

"""`torch.utils.module_tracker`: in which modules a program is, forward and backward."""

from __future__ import annotations

import weakref
from typing import Any

from .._tensor import Tensor
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_flatten

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """While it is entered, `parents` holds the names of the modules that run now, `Global` always among them."""

    def __init__(self) -> None:
        self.known_modules: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._forward: list[str] = []
        self._backward: set[str] = set()
        self._hooks: list[Any] = []

    @property
    def parents(self) -> set[str]:
        """Names of modules: the class of the outermost, and the way from there."""
        return {"Global", *self._forward, *self._backward}

    @property
    def is_bw(self) -> bool:
        """Whether a gradient is on its way through a module."""
        return bool(self._backward)

    def _name(self, module: Any) -> str:
        name = self.known_modules.setdefault(module, type(module).__name__)
        for way, part in module.named_modules():  # not the children alone: a ModuleList is never called itself
            if way:
                self.known_modules[part] = f"{name}.{way}"
        return name

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        if not self._forward:
            self._backward.clear()  # a backward that has ended at parameters leaves its last modules behind
        self._forward.append(name)
        waiting = [one for one in tree_flatten(args)[0] if isinstance(one, Tensor) and one.requires_grad]
        left = len(waiting)

        def arrived(grad: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._backward.discard(name)

        for one in waiting:
            one.register_hook(arrived)

    def _after(self, module: Any, args: Any, output: Any) -> None:
        name = self._forward.pop()
        for one in tree_flatten(output)[0]:
            if isinstance(one, Tensor) and one.requires_grad:
                one.register_hook(lambda grad: self._backward.add(name))

    def __enter__(self) -> ModuleTracker:
        self._hooks = [register_module_forward_pre_hook(self._before),
                       register_module_forward_hook(self._after, always_call=True)]
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._forward.clear()
        self._backward.clear()

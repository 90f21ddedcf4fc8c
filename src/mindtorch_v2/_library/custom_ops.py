"""`custom_op`: a function with annotations becomes an op."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._dispatch.overriding import ACTIVE, CLASSES, offered_op
from . import table
from .definition import EXPLICIT, Definition, device_place
from .generated import Formula
from .infer_schema import infer_schema
from .libraries import Library, device_key, set_formula
from .schema import parse
from .tags import as_tags

OPDEFS: weakref.WeakValueDictionary[str, CustomOpDef] = weakref.WeakValueDictionary()
# One library for each op; a later definition of the same name replaces an earlier one.
_LIBRARIES: dict[str, Library] = {}


def custom_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
              device_types: str | Sequence[str] | None = None, schema: str | None = None, tags: Any = None) -> Any:
    """Make a function an op of its own, which profiles show by name and whose inside autograd does not look at.

    >>> import mindtorch_v2 as torch
    >>> @torch.library.custom_op("docs::halved", mutates_args=())
    ... def halved(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 2
    >>> halved(torch.ones(2)), torch.ops.docs.halved(torch.ones(1))
    (tensor([0.5000, 0.5000]), tensor([0.5000]))
    """

    def define(function: Callable[..., Any]) -> CustomOpDef:
        signature = schema
        if signature is None:
            signature = infer_schema(function, mutates_args=mutates_args, tags=tags)
        namespace, op_name = name.split("::")
        made = CustomOpDef(namespace, op_name, signature, function, tags)
        if schema is not None:
            arguments = made._definition.schema
            declared = {arguments.arguments[place].name for place in arguments.mutated}
            if declared != set(mutates_args):
                raise ValueError(f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
                                 f"`schema={schema}. The schema suggests that the op mutates {declared}which is "
                                 "different from what was provided to us in `mutates_args`. Please make these "
                                 "consistent.")
        made.register_kernel(device_types)(function)
        return made

    return define if fn is None else define(fn)


class CustomOpDef:
    """An op made of a function; further kernels, a backward and shapes without data are registered on it."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self._tags = as_tags(tags)
        parsed = parse(namespace, name + schema)
        if any(a.is_tensor and a.kwarg_only for a in parsed.arguments):
            raise NotImplementedError("custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. "
                                      f"Got: {name + schema}")
        before = _LIBRARIES.pop(self._qualname, None)
        if before is not None:
            before._destroy()
        self._lib = _LIBRARIES[self._qualname] = Library(namespace, "FRAGMENT")
        self._lib.define(name + schema, tags=self._tags)
        self._definition: Definition = table.lookup(self._qualname)
        self._definition.is_custom_op = True
        self._definition.formula = Formula(None, None)
        self._definition.missing_fake = (
            f"There was no fake impl registered for {self}. It says which shapes and types "
            f"the results have: `{getattr(fn, '__name__', 'fn')}.register_fake` adds one.")
        self._backend_fns: dict[str | None, Callable[..., Any]] = {}
        self._disabled_kernel: set[str] = set()
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> Any:
        return OVERLOAD[0](self._definition)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE or CLASSES:
            answer = offered_op(self._opoverload, args, kwargs, sys._getframe(1))
            if answer is not None:
                return answer[0]
        return self._current()(*args, **kwargs)

    def _current(self) -> Definition:
        """The current definition of the name: a later op of the same name replaces this one."""
        found = table.find(self._qualname)
        return self._definition if found is None else found

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None,
                        /) -> Any:
        """Register an implementation for device types, as a decorator or with the function given."""
        definition = self._definition
        if device_types is not None and not definition.tensor_places and device_place(definition.schema) is None:
            raise ValueError("Functions without tensor inputs are required to have a `device: torch.device` argument")

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for one in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
                self._backend_fns[one] = function

                def run(*args: Any, _chosen: str | None = one, **kwargs: Any) -> Any:
                    disabled = _chosen in self._disabled_kernel
                    return (self._init_fn if disabled else self._backend_fns[_chosen])(*args, **kwargs)

                run.__module__ = getattr(function, "__module__", None) or __name__
                self._lib.impl(self._name, run, EXPLICIT if one is None else device_key(one))
            return function

        return register if fn is None else register(fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context that turns a device type's own kernel on or off; without it, the op's first function runs."""
        before = set(self._disabled_kernel)
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device_type)
        try:
            yield
        finally:
            self._disabled_kernel.clear()
            self._disabled_kernel.update(before)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register what the op does on tensors without data (device meta)."""
        self._definition.fake = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *,
                          setup_context: Callable[..., Any] | None = None) -> None:
        """Register the op's backward, `backward(ctx, *grads)`, and the function that saves for it."""
        set_formula(self._definition, self, backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Accept a rule that is never used: `vmap` here calls the op once for each example."""
        if func is None:
            return self.register_vmap
        self._vmap_fn = func
        return None

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """In an autocast region, floating point arguments are cast to this dtype first."""
        register_autocast_of(self._definition, device_type, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register `fn(mode or class, func, types, args, kwargs)`, which runs in place of a class's own function."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._definition.register_rule(torch_dispatch_class, function, replace=True)
            return function

        return register if fn is None else register(fn)


def register_autocast_of(definition: Definition, device_type: str, cast_inputs: Any) -> None:
    """See `CustomOpDef.register_autocast`."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in ("cpu", "cuda", "xpu", "npu"):
        raise ValueError(f"Unknown device type: {device_type}")
    definition.autocast[device_type] = cast_inputs


# Set by `torch.ops`: the object that stands for a definition there.
OVERLOAD: list[Callable[[Definition], Any]] = []

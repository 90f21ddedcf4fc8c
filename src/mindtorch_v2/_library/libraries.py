"""`Library`: a handle on a namespace, through which ops are defined and implemented."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import table
from .definition import DEVICE_KEYS, IMPLICIT, KEYS, Definition, fallthrough_kernel
from .generated import Formula
from .keys import DispatchKey
from .replacing import replace, replaceable
from .schema import parse
from .tags import as_tags

RESERVED = ("prim",)
# Namespace -> where its one library of kind DEF was made.
_OWNERS: dict[str, str] = {"aten": "the op table"}
# PyTorch's dispatch keys that this runtime does not have, or handles in another way.
FOREIGN_KEYS = frozenset({
    "ADInplaceOrView", "BackendSelect", "Batched", "FuncTorchBatched", "Functionalize",
    "Python", "PreDispatch", "Conjugate", "Negative", "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "MkldnnCPU",
    "NestedTensorCPU", "ZeroTensor", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutogradNestedTensor",
    "PythonTLSSnapshot", "PythonDispatcher", "FuncTorchVmapMode", "FuncTorchGradWrapper",
})


def _checked_key(key: str) -> str:
    if key in FOREIGN_KEYS:
        raise NotImplementedError(f"torch.library: kernels for dispatch key {key!r} are never asked for here: this "
                                  "runtime knows kernels for devices and for autograd")
    if key and key not in KEYS:
        raise RuntimeError(f"could not parse dispatch key: {key}")
    return key or IMPLICIT


class Library:
    """Defines ops in a namespace (`DEF`, once; `FRAGMENT`) or only implements them (`IMPL`).

    What it has registered lives as long as it does.

    >>> import mindtorch_v2 as torch
    >>> library = torch.library.Library("docs", "DEF")
    >>> library.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    >>> torch.ops.docs.twice(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in RESERVED and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        caller = sys._getframe(1)
        self.place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        if kind == "DEF" and ns in _OWNERS:
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}. It was first "
                f"defined at {_OWNERS[ns]}, and now at {self.place}: Library({ns!r}, 'FRAGMENT') adds further ops, and "
                f"Library({ns!r}, 'IMPL') kernels")
        if kind == "FRAGMENT" and ns == "aten":
            raise NotImplementedError("torch.library: ops cannot be added to the namespace aten, which is the op "
                                      "table's; use a namespace of your own")
        if dispatch_key:
            _checked_key(dispatch_key)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        if kind == "DEF":
            _OWNERS[ns] = self.place
        self._undo: list[Callable[[], Any]] = [] if kind != "DEF" else [lambda: _OWNERS.pop(ns, None)]
        self._finalizer = weakref.finalize(self, _undo_all, self._undo)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Add an op, by its signature; returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        name = schema.partition("(")[0].strip()
        if self.kind == "IMPL":
            raise RuntimeError(f'def("{name}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block. '
                               f"The library made at {self.place} is one of kind 'IMPL', which only adds kernels")
        definition = Definition(self.ns, parse(self.ns, schema.removeprefix(f"{self.ns}::")), as_tags(tags))
        if table.find(definition.qualname) is not None:
            raise RuntimeError(f"Tried to register an operator ({definition.schema}) with the same name and overload "
                               "name multiple times. "
                               f"The second time is in the library made at {self.place}.")
        table.add(definition)
        self._undo.append(lambda: table.remove(definition))
        return name

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: type, fn: Callable[..., Any]) -> None:
        """What runs for an op in place of a class's `__torch_dispatch__`, while the library lives."""
        definition = table.lookup(f"{self.ns}::{op_name}")
        definition.register_rule(torch_dispatch_class, fn)
        self._undo.append(lambda: definition.rules.pop(torch_dispatch_class, None))

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
             allow_override: bool = True) -> None:
        """Register a kernel of an op for a dispatch key."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if with_keyset:
            raise NotImplementedError("torch.library: with_keyset=True passes a set of dispatch keys, which this "
                                      "runtime does not have; use torch._C._AutoDispatchBelowAutograd()")
        name = _op_name(op_name)
        if self.ns == "aten":
            if fn is fallthrough_kernel and (dispatch_key or self.dispatch_key) == "CPU":
                return  # the kernel below that of the device is the present one
            self._undo.append(replace(replaceable(name, dispatch_key or self.dispatch_key), fn))
            return
        key = _checked_key(dispatch_key or self.dispatch_key)
        given, _, rest = name.rpartition("::")
        if given and given != self.ns:
            raise RuntimeError(f"impl(\"{name}\", ...): the namespace ({given}) in the operator's name does not match "
                               f"namespace of the library ({self.ns})")
        name = rest
        qualname = f"{self.ns}::{name}"
        definition = table.find(qualname)
        kernels = table.PENDING.setdefault(qualname, {}) if definition is None else definition.kernels
        if not allow_override and key in kernels:
            raise RuntimeError("This is not allowed since there's already a kernel registered from python overriding "
                               f"{name}'s behavior for {key} dispatch key and {self.ns} namespace.")
        if key == "Meta" and IMPLICIT in kernels:
            raise RuntimeError(f"We should not register a meta kernel directly to the operator '{name}', because it "
                               "has a CompositeImplicitAutograd kernel in core. Instead we should let the operator "
                               "decompose, and ensure that we have meta kernels for the base ops that it decomposes "
                               "into.")
        kernels[key] = fn

        def undo() -> None:
            found = table.find(qualname)
            registered = table.PENDING.get(qualname, {}) if found is None else found.kernels
            if registered.get(key) is fn:
                del registered[key]

        self._undo.append(undo)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Ops without a kernel of their own for a key."""
        if self.ns != "_":
            raise RuntimeError('Fallback can only be registered using library fragment on the global namespace "_" but '
                               f"it is {self.ns}")
        raise NotImplementedError("torch.library: fallbacks for all ops of a dispatch key are not part of this runtime")

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, *,
                       allow_override: bool = True) -> None:
        table.lookup(f"{self.ns}::{op_name.partition('::')[2] or op_name}").fake = fn

    def _destroy(self) -> None:
        self._finalizer()


def _undo_all(steps: list[Callable[[], Any]]) -> None:
    while steps:
        steps.pop()()


def _op_name(op: Any) -> str:
    if isinstance(op, str):
        return op
    if not hasattr(op, "_schema"):
        raise RuntimeError("impl should be passed either a name or an OpOverload object as the first argument, got "
                           f"{type(op)}")
    return op.name()


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for the length of a block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_KEPT: list[Library] = []
_NAMELESS = re.compile(r"\(.*\) -> .*")


def fragment(namespace: str, library: Library | None) -> Library:
    """The given library, or one that is never freed."""
    if library is None:
        library = Library(namespace, "IMPL" if namespace == "aten" else "FRAGMENT")
        _KEPT.append(library)
    return library


def define(qualname: Any, schema: str, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Add an op: `define("ns::name", "(Tensor x) -> Tensor")`."""
    if isinstance(qualname, Library):
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(qualname.define(schema, alias_analysis), function)
            return function

        return decorate
    if not isinstance(qualname, str):
        raise ValueError("define(qualname, schema): expected qualname to be instance of str, got "
                         f"{type(qualname)}")
    namespace, name = table.parse_qualname(qualname)
    library = fragment(namespace, lib)
    if not _NAMELESS.fullmatch(schema):
        raise ValueError('define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but '
                         f'got "{schema}"')
    library.define(name + schema, tags=tags)
    return None


def device_key(device_type: str) -> str:
    """The dispatch key of kernels for a device type."""
    if device_type == "default":
        return "CompositeExplicitAutograd"
    if device_type not in DEVICE_KEYS:
        known = ", ".join(DEVICE_KEYS)
        raise RuntimeError(f"Expected one of {known} device type at start of device string: {device_type}")
    return DEVICE_KEYS[device_type]


def impl(qualname: Any, types: str | Sequence[str], func: Callable[..., Any] | None = None, *,
         lib: Library | None = None) -> Any:
    """Register a kernel for device types, as a decorator, `@impl("ns::name", "cpu")`, or with the function given."""
    if isinstance(qualname, Library):
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(types, function, func or "")  # type: ignore[arg-type]
            return function

        return decorate
    given = [types] if isinstance(types, str) else types
    keys = {one if one in DispatchKey.__members__ else device_key(one) for one in given}

    def register(function: Callable[..., Any]) -> None:
        library = fragment(table.parse_qualname(qualname)[0], lib)
        for key in sorted(keys):
            library.impl(qualname, function, key)

    return register if func is None else register(func)


def set_formula(definition: Definition, shown: Any, backward: Callable[..., Any],
                setup_context: Callable[..., Any] | None) -> None:
    """Give an op its backward; only ops that change nothing and return new memory can have one."""
    schema = definition.schema
    if schema.is_mutable or any(one.alias_info is not None for one in schema.returns) or not schema.returns:
        raise RuntimeError(f"Cannot register autograd formula for non-functional operator {shown} with schema "
                           f"{schema}. Please create a functional operator and register an autograd formula for that.")
    definition.formula = Formula(backward, setup_context)

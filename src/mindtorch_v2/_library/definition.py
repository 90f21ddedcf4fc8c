"""One op of a program: its signature, what was registered for it, and what a call of it does.

It is declared like any op, as a composite in a namespace of its own, so that profiles, traces and taps see it as they
see the others. PyTorch's dispatcher looks a kernel up by key, from the outermost concern to the innermost; the keys
that mean something here are looked at in the same order: autocast, autograd, versions of changed arguments, device.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._autograd.graph import Node, edge
from .._autograd.inplace import bump
from .._dispatch.autocast import SETTINGS, on_cpu
from .._dispatch.autocast import cast as autocast_value
from .._dispatch.dispatcher import compile_op
from .._dispatch.observer import HOOK
from .._dispatch.registry import Op
from .._dispatch.state import THREAD
from .._tensor import Tensor, is_differentiable_dtype
from .aliasing import check_aliasing
from .arguments import bind, results
from .generated import Formula, autograd_function
from .schema import FunctionSchema

# Device type -> the name of its dispatch key.
DEVICE_KEYS = {"cpu": "CPU", "meta": "Meta", "npu": "PrivateUse1", "cuda": "CUDA", "ipu": "IPU", "xpu": "XPU",
               "mkldnn": "MKLDNN", "hip": "HIP", "ve": "VE", "fpga": "FPGA", "maia": "MAIA", "xla": "XLA",
               "lazy": "Lazy", "vulkan": "Vulkan", "mps": "MPS", "hpu": "HPU", "mtia": "MTIA",
               "privateuseone": "PrivateUse1"}
EXPLICIT, IMPLICIT = "CompositeExplicitAutograd", "CompositeImplicitAutograd"
AUTOCAST = "AutocastCPU"
KEYS = frozenset({*DEVICE_KEYS.values(), *(f"Autograd{key}" for key in DEVICE_KEYS.values()), "Autograd", EXPLICIT,
                  IMPLICIT, AUTOCAST, "AutocastCUDA", "AutocastXPU"})


def key_of(device_type: str) -> str:
    """PyTorch's dispatch key of a device; devices that are registered are private."""
    return DEVICE_KEYS.get(device_type, "PrivateUse1")


class Fallback:
    """What happens to results of ops with nothing for autograd: "warn" when a gradient arrives, or "nothing"."""

    mode = "warn"


def get_autograd_fallback_mode() -> str:
    """See `Fallback`."""
    return Fallback.mode


def set_autograd_fallback_mode(mode: str) -> None:
    """See `Fallback`; the mode "error" is one that PyTorch does not implement either."""
    if mode not in ("nothing", "warn"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    Fallback.mode = mode


class _Below(threading.local):
    """Whether this thread is below autograd."""

    level = 0


BELOW = _Below()


class below_autograd:
    """`torch._C._AutoDispatchBelowAutograd`: inside, ops are neither recorded nor do their autograd kernels run."""

    def __enter__(self) -> None:
        self.grad = THREAD.state.grad
        THREAD.state.grad = False
        BELOW.level += 1

    def __exit__(self, *exc: object) -> None:
        BELOW.level -= 1
        THREAD.state.grad = self.grad


def fallthrough_kernel() -> None:
    """Stands for a kernel in a registration: the next one in order runs instead."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Definition:
    """An op that a program has defined."""

    def __init__(self, namespace: str, signature: FunctionSchema, tags: tuple[Any, ...] = ()) -> None:
        self.namespace = namespace
        self.schema = signature
        self.tags = tags
        self.name = signature.name.partition("::")[2]
        self.overload = signature.overload_name
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.autocast: dict[str, Any] = {}
        self.formula: Formula | None = None
        self.function: Any = None
        # By class: what runs in place of its `__torch_dispatch__`.
        self.rules: dict[type, Callable[..., Any]] = {}
        # A function that was made an op as a whole promises more than kernels that are registered one by one.
        self.is_custom_op = False
        self.missing_fake = ""
        self.tensor_places = [i for i, a in enumerate(signature.arguments) if a.is_tensor]
        kinds = ", ".join(f"{a.declared} x{i}" for i, a in enumerate(signature.arguments))
        suffix = f".{self.overload}" if self.overload else ""
        self.op = Op(f"{self.name}{suffix}({kinds}) -> {signature.result_text}", composite=self.run, where="n",
                     namespace=namespace, signature=signature)

    @property
    def qualname(self) -> str:
        """`ns::name`, with the overload's name if it has one."""
        return f"{self.schema.name}.{self.overload}" if self.overload else self.schema.name

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}.{self.overload or 'default'}"

    def register_rule(self, kind: type, rule: Callable[..., Any], replace: bool = False) -> None:
        """Set what runs in place of the `__torch_dispatch__` of a class."""
        if kind in self.rules and not replace:
            raise RuntimeError(f"{kind} already has a `__torch_dispatch__` rule registered for {self.schema.name}")
        self.rules[kind] = rule

    # -- a call ----------------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.call_bound(bind(self.schema, args, kwargs))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """All arguments in order, cast to their types; raises if they do not fit."""
        return bind(self.schema, args, kwargs)

    def call_bound(self, values: list[Any]) -> Any:
        """Call the op with arguments that `bind` has made."""
        return compile_op(self.op)(*values)

    def run(self, *values: Any) -> Any:
        """The op itself, on all arguments in order."""
        state = THREAD.state
        if self.autocast and HOOK["AUTOCAST"] and state.autocast and any(map(on_cpu, values)):
            return self._cast_and_run(values)
        if AUTOCAST in self.kernels and HOOK["AUTOCAST"] and state.autocast and any(map(on_cpu, values)):
            return results(self.schema, self._call(self.kernels[AUTOCAST], values))
        if BELOW.level:
            return self._backend(values)
        key = key_of(self._device(values))
        kernel = self.kernels.get(f"Autograd{key}") or self.kernels.get("Autograd")
        if kernel is fallthrough_kernel:
            return self._backend(values)
        if kernel is not None:
            return results(self.schema, self._call(kernel, values))
        if self.formula is None:
            return self._undeclared(values) if self._is_implicit(key) is False else self._backend(values)
        if state.grad and any(tensor.requires_grad for tensor in self._tensors(values)):
            return self._generated().call(values, self.below)
        return self.below(values)

    def answered(self, values: list[Any], answer: Callable[[], Any]) -> Any:
        """A call that a dispatch mode answers: a registered derivative is above it."""
        kernels = (f"Autograd{key_of(self._device(values))}", "Autograd")
        if (self.formula is None or BELOW.level or not THREAD.state.grad
                or any(name in self.kernels for name in kernels)
                or not any(tensor.requires_grad for tensor in self._tensors(values))):
            return answer()
        return self._generated().call(values, lambda _: results(self.schema, answer()))

    def below(self, values: tuple[Any, ...] | list[Any]) -> Any:
        """Everything below autograd."""
        with below_autograd():
            # The kernel may call ops; they are not recorded.
            level, BELOW.level = BELOW.level, 0
            try:
                return self._backend(values)
            finally:
                BELOW.level = level

    def _cast_and_run(self, values: tuple[Any, ...]) -> Any:
        state = THREAD.state
        target = self.autocast.get("cpu")
        state.autocast = False
        try:
            given = values if target is None else [autocast_value(value, target, state, SETTINGS.dtypes["cpu"])
                                                   for value in values]
            return compile_op(self.op)(*given)
        finally:
            state.autocast = True

    def _backend(self, values: tuple[Any, ...] | list[Any]) -> Any:
        if self.is_custom_op:
            for place in self.schema.mutated:
                for tensor in values[place] if isinstance(values[place], list) else (values[place],):
                    if isinstance(tensor, Tensor):
                        bump(tensor)
        where = self._device(values)
        kernel = self._kernel(key_of(where))
        if where == "meta" and (self.fake is not None or (self.missing_fake and "Meta" not in self.kernels)):
            return results(self.schema, self._call(self._fake_kernel(), values))
        if kernel is None:
            self._complain(where)
        level, BELOW.level = BELOW.level, 0
        try:
            made = self._call(kernel, values)
        finally:
            BELOW.level = level
        made = results(self.schema, made)
        if self.is_custom_op and not self.schema._is_view_op():
            check_aliasing(self.name, kernel, list(self._tensors(values)), made)
        return made

    def _fake_kernel(self) -> Callable[..., Any]:
        if self.fake is not None:
            return self.fake
        if self.schema.is_mutable and not self.schema.returns:
            return lambda *args, **kwargs: None
        raise RuntimeError(self.missing_fake)

    def _kernel(self, key: str) -> Any:
        for candidate in (key, EXPLICIT, IMPLICIT):
            found = self.kernels.get(candidate)
            if found is not None and found is not fallthrough_kernel:
                return found
        return None

    def _is_implicit(self, key: str) -> bool:
        """Whether the kernel is made of ops that are recorded themselves."""
        kernel = self._kernel(key)
        return kernel is not None and kernel is self.kernels.get(IMPLICIT)

    def _call(self, kernel: Callable[..., Any], values: Any) -> Any:
        given, named = self.spread(values)
        return kernel(*given, **named)

    def spread(self, values: Any) -> tuple[list[Any], dict[str, Any]]:
        """Arguments as PyTorch passes them on: keyword-only ones by name, and without trailing defaults."""
        given: list[Any] = []
        named: dict[str, Any] = {}
        for argument, value in zip(self.schema.arguments, values, strict=True):
            if not argument.kwarg_only:
                given.append(value)
            elif not _is_default(argument, value):
                named[argument.name] = value
        while given and _is_default(self.schema.arguments[len(given) - 1], given[-1]):
            given.pop()
        return given, named

    def _tensors(self, values: Any) -> Iterator[Tensor]:
        for place in self.tensor_places:
            value = values[place]
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, Tensor):
                    yield one

    def _device(self, values: Any) -> str:
        """The device type whose kernel runs."""
        found = ""
        for tensor in self._tensors(values):
            if type(tensor._a) is not np.ndarray:
                found = tensor.device.type
                if found == "meta":
                    break
        if not found and not self.tensor_places:
            place = device_place(self.schema)
            if place is not None and self.is_custom_op and values[place] is not None:
                found = values[place].type
                if EXPLICIT not in self.kernels and key_of(found) not in self.kernels:
                    raise RuntimeError(f"{self.name} does not have a kernel registered for {found}. Please use "
                                       "register_kernel to do so.")
        return found or "cpu"

    def _complain(self, where: str) -> None:
        if where == "meta":
            raise NotImplementedError(f"{self.qualname}: attempted to run this operator with Meta tensors, but there "
                                      "was no fake impl or Meta kernel registered.")
        have = ", ".join(sorted(key for key in self.kernels if not key.startswith("Autograd")))
        raise NotImplementedError(f"Could not run '{self.qualname}' with arguments from the '{key_of(where)}' "
                                  "backend. This could be because the operator doesn't exist for this backend. "
                                  f"'{self.qualname}' is only available for these backends: [{have}].")

    # -- autograd --------------------------------------------------------------------------------------------------

    def _generated(self) -> Any:
        if self.function is None:
            self.function = autograd_function(self)
        return self.function

    def _undeclared(self, values: tuple[Any, ...]) -> Any:
        """A kernel for a device and nothing for autograd: PyTorch runs it, and warns when a gradient arrives."""
        if Fallback.mode == "nothing":
            return self._backend(values)
        state = THREAD.state
        tensors = [tensor for tensor in self._tensors(values) if tensor.requires_grad]
        if not (state.grad and tensors):
            return self._backend(values)
        node = object.__new__(WarnNotImplemented)
        node.edges, node.hooks, node.seq = tuple(map(edge, tensors)), None, state.seq
        node.qualname = self.qualname
        state.seq += 1
        made = self._backend(values)
        outputs = [one for one in (made if isinstance(made, (list, tuple)) else (made,)) if isinstance(one, Tensor)]
        node.meta = tuple((one._a.shape, one._a.dtype) for one in outputs)
        for number, one in enumerate(outputs):
            if one.requires_grad:
                one.register_hook(lambda grad: warn_not_implemented(self.qualname))
            elif is_differentiable_dtype(one._a.dtype):
                one._rg, one._edge = True, (node, number)
        return made


class WarnNotImplemented(Node):
    """The history of results without a registered derivative: gradients end here, with a warning."""

    __slots__ = ("qualname",)
    qualname: str

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """No gradient."""
        warn_not_implemented(self.qualname)
        return tuple(None for _ in self.edges)


def warn_not_implemented(qualname: str) -> None:
    """A gradient has arrived at an op without an autograd kernel."""
    warnings.warn(f"{qualname}: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
                  "backprop through it. What it was computed from gets no gradient. Register how to differentiate it, "
                  "or torch.library.fallthrough_kernel for the key 'Autograd' if it has no gradient.", stacklevel=2)


def _is_default(argument: Any, value: Any) -> bool:
    if not argument.has_default:
        return False
    default = argument.default
    return value is default or (type(value) is type(default) and not isinstance(value, Tensor) and value == default)


def device_place(schema: FunctionSchema) -> int | None:
    """The position of the argument that gives an op without tensors its device."""
    return next((i for i, a in enumerate(schema.arguments) if a.base == "Device" and a.name == "device"), None)

"""Parametrizations: a parameter or buffer that is computed from others by modules.

A module with parametrized tensors changes its class to one of its own, on which each of these tensors is a property.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dtype import DType
from ..._tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "transfer_parametrizations_and_params", "type_before_parametrizations"]


class Cache:
    """Values of parametrized tensors while `cached` is active."""

    depth = 0
    values: dict[tuple[int, str], Any] = {}  # noqa: RUF012


@contextmanager
def cached() -> Iterator[None]:
    """Compute every parametrized tensor only once inside this block."""
    Cache.depth += 1
    try:
        yield
    finally:
        Cache.depth -= 1
        if not Cache.depth:
            Cache.values = {}


def _owned(value: Tensor, like: Any) -> Any:
    """A tensor as what it is kept as: a parameter if the original was one."""
    return Parameter(value, like.requires_grad) if isinstance(like, Parameter) else value


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, and the tensors they start from: `original`, or `original0`, …"""

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = original
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        # Allowed: the original then is the value itself.
                        continue
        if not isinstance(new, Tensor) and not isinstance(new, Sequence):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                             f"Got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            if original.dtype != new.dtype:
                raise ValueError("When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                                 f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}")
            with no_grad():
                original.set_(new)
            self._keep("original", original)
        else:
            for i, one in enumerate(new):
                if not isinstance(one, Tensor):
                    raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                     f"Got element {i} of the sequence with type {type(one).__name__}.")
                self._keep(f"original{i}", _owned(one.data if isinstance(original, Parameter) else one, original))
        if not unsafe:
            self._check_result(self(), shape, dtype)

    def _keep(self, name: str, tensor: Any) -> None:
        if isinstance(tensor, Parameter):
            self.register_parameter(name, tensor)
        else:
            self.register_buffer(name, tensor)

    def _check_result(self, made: Any, shape: Any, dtype: DType | None) -> None:
        if not isinstance(made, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        if made.dtype != dtype:
            raise ValueError("Registering a parametrization may not change the dtype of the tensor, unless `unsafe` "
                             f"flag is enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: {made.dtype}")
        if made.shape != shape:
            raise ValueError("Registering a parametrization may not change the shape of the tensor, unless `unsafe` "
                             f"flag is enabled.\nunparametrized shape: {shape}\nparametrized shape: {made.shape}")

    def originals(self) -> list[Any]:
        """The tensors that the value is computed from."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes `value`."""
        with no_grad():
            new: Any = value
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                new = module.right_inverse(new)
            news = [new] if self.is_tensor else list(new)
            if len(news) != self.ntensors:
                raise ValueError("'right_inverse' must return a sequence of tensors of length "
                                 f"{self.ntensors}. Got a sequence of length {len(news)}.")
            for kept, one in zip(self.originals(), news):
                if not isinstance(one, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(one).__name__}")
                if kept.dtype != one.dtype:
                    raise ValueError("The tensor returned by `right_inverse` has dtype "
                                     f"{one.dtype} while `original` has dtype {kept.dtype}")
                kept.set_(one)

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        made = self[0](*self.originals())
        for module in list(self)[1:]:
            made = module(made)
        return made


def _property(name: str) -> property:
    def get(module: Module) -> Any:
        if not Cache.depth:
            return module.parametrizations[name]()
        key = (id(module), name)
        if key not in Cache.values:
            Cache.values[key] = module.parametrizations[name]()
        return Cache.values[key]

    def put(module: Module, value: Any) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(get, put)


def _refuse_pickling(module: Module) -> Any:
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(). See:\n"
                       "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
                       "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")


def _deep_copy(module: Module, memo: dict[int, Any]) -> Any:
    made = object.__new__(type(module))
    memo[id(module)] = made
    made.__dict__.update(copy.deepcopy(module.__dict__, memo))
    # The copy gets a class of its own: parametrizations are added to and removed from classes.
    made.__class__ = _make_class(type_before_parametrizations(module))
    for name in made.parametrizations:
        setattr(made.__class__, name, _property(name))
    return made


def _make_class(base: type) -> type:
    contents: dict[str, Any] = {"__getstate__": _refuse_pickling}
    if not hasattr(base, "__deepcopy__"):
        contents["__deepcopy__"] = _deep_copy
    return type(f"Parametrized{base.__name__}", (base,), contents)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrized tensors, or this one."""
    table = module.__dict__.get("_modules", {}).get("parametrizations")
    if table is None or not isinstance(table, ModuleDict):
        return False
    return len(table) > 0 if tensor_name is None else tensor_name in table


def type_before_parametrizations(module: Module) -> type:
    """The class a module had before its tensors were parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def register_parametrization(module: Module, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Compute a parameter or buffer of a module by another module from now on.

    >>> import mindtorch_v2 as torch
    >>> class Twice(torch.nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> layer = torch.nn.Linear(1, 1)
    >>> _ = torch.nn.utils.parametrize.register_parametrization(layer, "bias", Twice())
    >>> list(layer.state_dict())
    ['weight', 'parametrizations.bias.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        found = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            made = parametrization(value)
            found._check_result(made, value.shape, value.dtype)
            if hasattr(parametrization, "right_inverse"):
                back = parametrization.right_inverse(made)
                if not isinstance(back, Tensor):
                    raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
        found.append(parametrization)
        found.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _make_class(type(module))
            module.parametrizations = ModuleDict()
        setattr(module.__class__, tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                         f"'{tensor_name}'")
    return module


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """An ordinary parameter or buffer again: the computed value, or the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
                original.set_(value)
    elif leave_parametrized:
        first = parametrizations.original0
        original = _owned(getattr(module, tensor_name).detach(), first)
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
                         "terms of a sequence of tensors.")
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = module.__class__.__bases__[0]
    return module


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give a module the parametrizations of another, and the tensors that they compute from: both have them."""
    if not is_parametrized(from_module):
        return to_module
    names = from_module.parametrizations if tensor_name is None else [tensor_name]
    for name in names:
        found = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for one in found:
            register_parametrization(to_module, name, one)
        target = to_module.parametrizations[name]
        for one in ["original"] if found.is_tensor else [f"original{number}" for number in range(found.ntensors)]:
            setattr(target, one, getattr(found, one))
    return to_module

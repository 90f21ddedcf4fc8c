"""Calling a module with other parameters than its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..._tensor import Tensor
from ...nn.modules.module import Module

__all__ = ["functional_call"]


def _tables(module: Module) -> dict[str, tuple[Any, str]]:
    """Where each parameter and buffer is kept, by its full name."""
    found: dict[str, tuple[Any, str]] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            found.update({f"{prefix}.{name}" if prefix else name: (table, name) for name in table})
    return found


def _tied(module: Module, given: dict[str, Tensor], places: dict[str, tuple[Any, str]]) -> dict[str, Tensor]:
    """What is given, also for the other names of the same tensors."""
    names: dict[int, list[str]] = {}
    for name, (table, key) in places.items():
        if table[key] is not None:
            names.setdefault(id(table[key]), []).append(name)
    made = dict(given)
    for group in names.values():
        said = [name for name in group if name in given]
        if len({id(given[name]) for name in said}) > 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(said)}, which are tied. Consider "
                             "using tie_weights=False")
        if said:
            made.update(dict.fromkeys(group, given[said[0]]))
    return made


ABSENT = object()


class _Attributes:
    """Attributes of a module that are neither parameters nor buffers, read and written like a table's entries."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __getitem__(self, name: str) -> Any:
        return getattr(self.module, name, ABSENT)

    def __setitem__(self, name: str, value: Any) -> None:
        own = self.module.__dict__
        if value is ABSENT:
            del own[name]
        elif isinstance(getattr(type(self.module), name, None), property):
            setattr(self.module, name, value)  # a parametrization takes the value apart
        else:
            own[name] = value


def _attribute(module: Module, name: str) -> tuple[Any, str]:
    """The place for a tensor that is neither parameter nor buffer; unknown names are refused."""
    path, _, key = name.rpartition(".")
    part: Any = module
    for step in path.split(".") if path else ():
        if not hasattr(part, step):
            raise AttributeError(f"{part._get_name()} has no attribute `{step}`")
        part = getattr(part, step)
        if not isinstance(part, Module):
            raise TypeError(f"submodule `{path}`: {part} is not an instance of torch.nn.Module")
    if not key:
        raise KeyError('tensor name can\'t be empty string ""')
    attributes = _Attributes(part)
    if attributes[key] is not ABSENT and not isinstance(attributes[key], Tensor):
        raise TypeError(f"attribute `{key}`: {attributes[key]} is not an instance of torch.Tensor")
    return attributes, key


@contextlib.contextmanager
def _replaced(module: Module, given: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    places = _tables(module)
    asked = given  # the caller's own dictionary
    for tensor in given.values():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if tie_weights:
        given = _tied(module, given, places)
    missing = [name for name in places if name not in given and places[name][0][places[name][1]] is not None]
    unexpected = [name for name in given if name not in places]
    if strict and (missing or unexpected):
        text = f"Error(s) in reparametrizing for {module._get_name()}:"
        if unexpected:
            text += "\n\tUnexpected key(s): " + ", ".join(f"'{name}'" for name in sorted(unexpected)) + "."
        if missing:
            text += "\n\tMissing key(s): " + ", ".join(f"'{name}'" for name in sorted(missing)) + "."
        raise RuntimeError(text)
    places.update({name: _attribute(module, name) for name in unexpected})
    kept = {name: places[name][0][places[name][1]] for name in given if name in places}
    try:
        for name in kept:
            table, key = places[name]
            table[key] = given[name]
        yield
    finally:
        for name, tensor in kept.items():
            table, key = places[name]
            # What the module itself put there meanwhile, such as running statistics, goes to the caller's dictionary.
            now = table[key] if isinstance(table, _Attributes) else table.get(key, ABSENT)
            if now is not given[name] and now is not ABSENT and name in asked:
                asked[name] = now
            table[key] = tensor


def call_with(module: Module, parameters_and_buffers: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *,
              tie_weights: bool = True, strict: bool = False) -> Any:
    """`module(*args, **kwargs)` with these tensors in the place of its own.

    >>> import mindtorch_v2 as torch
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> torch.nn.utils.stateless.call_with(layer, {"weight": torch.ones(1, 2)}, torch.ones(1, 2))
    tensor([[2.]])
    """
    if isinstance(parameters_and_buffers, (list, tuple)):
        merged: dict[str, Tensor] = {}
        for one in parameters_and_buffers:
            merged.update(one)
        parameters_and_buffers = merged
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _reparametrize_module(module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False,
                          strict: bool = False, stack_weights: bool = False) -> Any:
    """A context in which a module has these tensors in the place of its own."""
    return _replaced(module, parameters_and_buffers, tie_weights, strict)


def functional_call(module: Module, parameters_and_buffers: dict[str, Tensor], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """`module(*args, **kwargs)` with these tensors in the place of its own."""
    warnings.warn("`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a "
                  "future version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in "
                  "replacement.", FutureWarning, stacklevel=2)
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)

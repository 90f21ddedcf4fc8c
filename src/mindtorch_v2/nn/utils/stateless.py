"""Calling a module with other parameters than its own."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module
from ._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]

# Not imported here: it takes the profiler along, and nobody has such a module before it is loaded.
_PARALLEL = __name__.replace("utils.stateless", "parallel.data_parallel")


def _tied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """What is given, also for the other names of the same tensors."""
    names: dict[int, list[str]] = {}
    for name, tensor in NamedMemberAccessor(module).named_tensors(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
    made = dict(given)
    for group in names.values():
        said = [name for name in group if name in given]
        if len({id(given[name]) for name in said}) > 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(said)}, which are tied. Consider "
                             "using tie_weights=False")
        if said:
            made.update(dict.fromkeys(group, given[said[0]]))
    return made


def _check_names(module: Module, given: dict[str, Tensor]) -> None:
    """With `strict`, the names must be those of all parameters and buffers."""
    missing, unexpected = NamedMemberAccessor(module).check_keys(given)
    if missing or unexpected:
        text = f"Error(s) in reparametrizing for {module._get_name()}:"
        if unexpected:
            text += "\n\tUnexpected key(s): " + ", ".join(map(repr, unexpected)) + "."
        if missing:
            text += "\n\tMissing key(s): " + ", ".join(map(repr, missing)) + "."
        raise RuntimeError(text)


@contextlib.contextmanager
def _replaced(module: Module, asked: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    given = _tied(module, asked) if tie_weights else asked
    if strict:
        _check_names(module, given)
    places = NamedMemberAccessor(module)
    kept, _ = places.swap_tensors_dict(given, allow_missing=True)
    try:
        yield
    finally:
        left, _ = places.swap_tensors_dict({name: kept[name] for name in reversed(kept)}, allow_missing=True)
        # What the module itself put there meanwhile, such as running statistics, goes to the caller's dictionary.
        asked.update({name: left[name] for name in asked if name in left and left[name] is not given[name]})


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
    parallel = sys.modules.get(_PARALLEL)
    if parallel is not None and isinstance(module, parallel.DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
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

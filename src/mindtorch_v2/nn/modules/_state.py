"""Saving and loading: `state_dict` and `load_state_dict` with their hooks and their error texts."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._autograd.graph import RemovableHandle
from ..._tensor import Tensor
from ...utils._swapping import swap_tensors
from ..parameter import Parameter, is_lazy
from ._convert import Conversion
from ._hooks import Handle
from ._tree import Tree

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ("missing_keys", "unexpected_keys"))):
    """What `load_state_dict` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class LoadHook:
    """A hook that runs before loading, with its module as first argument if it wants it."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        # Weak references are not copied or pickled; the owner is kept and referred to weakly again.
        return {"hook": self.hook, "module": None if self.module is None else self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        LoadHook.__init__(self, state["hook"], state["module"])


class State(Tree):
    """The part of `Module` that is saved."""

    _version: int = 1
    dump_patches = False
    _state_dict_hooks: dict[int, Any]
    _state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_post_hooks: dict[int, Any]

    def get_extra_state(self) -> Any:
        """Anything besides tensors that belongs in the state dict; to be overridden with `set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # -- hooks -----------------------------------------------------------------------------------------------------

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously "
                               "registered via register_state_dict_post_hook")
        return Handle(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`; it changes the dict in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return Handle(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict`."""
        return Handle(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any],
                                           with_module: bool = False) -> RemovableHandle:
        return Handle(self._load_state_dict_pre_hooks, LoadHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` first."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the lists in place."""
        return Handle(self._load_state_dict_post_hooks, hook)

    # -- saving ----------------------------------------------------------------------------------------------------

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not State.get_extra_state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Dotted names and tensors of everything that is saved; the tensors share memory with the module's."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict "
                          "for details.", FutureWarning, stacklevel=2)
            given: list[Any] = [destination, prefix, keep_vars]
            given[:len(args)] = args
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if replaced is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif replaced is not None:
                destination = replaced
        return destination

    # -- loading ---------------------------------------------------------------------------------------------------

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        """Take what belongs to this very module; subclasses override it to read older formats."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        kept = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        own = {name: value for name, value in itertools.chain(self._parameters.items(), kept) if value is not None}
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, key, value, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + EXTRA_STATE
        if self._has_set_extra_state():
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    first, dot, _ = key[len(prefix):].partition(".")
                    if first not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _has_set_extra_state(self) -> bool:
        return type(self).set_extra_state is not State.set_extra_state

    def _load_one(self, name: str, key: str, value: Tensor, given: Any, assign: bool, error_msgs: list[str]) -> None:
        if not (isinstance(given, Tensor) or hasattr(given, "__torch_function__")):
            error_msgs.append(f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                              f"from checkpoint but received {type(given)}")
            return
        if is_lazy(value) and is_lazy(given):
            return  # neither has anything to copy
        if value.ndim == 0 and given.shape == (1,):
            # Files from before zero-dimensional tensors existed hold one-element vectors.
            given = given[0]
        if given.shape != value.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                              f"the shape in current model is {value.shape}.")
            return
        if value.is_meta and not given.is_meta and not assign:
            warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                          "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the "
                          "state dictionary to their corresponding key in the module instead of copying them in "
                          "place?)", stacklevel=2)
        try:
            with no_grad():
                if Conversion.swap:
                    swap_tensors(value, swapped_in(value, given, assign))
                elif assign:
                    setattr(self, name, assigned(value, given))
                else:
                    value.copy_(given)
        except Exception as error:  # every failed tensor is reported, not only the first
            error_msgs.append(f'While {"swapping" if Conversion.swap else "copying"} the parameter named "{key}", '
                              "whose dimensions in the model are "
                              f"{value.shape} and whose dimensions in the checkpoint are {given.shape}, "
                              f"an exception occurred : {error.args}.")

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy tensors into this module and those below (or, with `assign`, put them there).

        With `strict`, names must match exactly. Returns the missing and the unexpected names.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        loading = Loading(metadata, assign)
        loading.into(self, state, "")
        missing, unexpected, errors = loading.missing, loading.unexpected, loading.errors
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {quoted(missing)}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)


class Loading:
    """One call of `load_state_dict`: what goes into all modules, and what was found wrong."""

    def __init__(self, metadata: Any, assign: bool) -> None:
        self.metadata, self.assign = metadata, assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def into(self, module: Any, local: Any, prefix: str) -> None:
        """Load a module, then those below it, and run its hooks."""
        local_metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            local_metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(local, prefix, local_metadata, True, self.missing, self.unexpected, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.into(child, {k: v for k, v in local.items() if k.startswith(below)}, below)
        keys = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                                     "return new values, if incompatible_keys need to be modified, it should be done "
                                     "inplace.")


def quoted(names: list[str]) -> str:
    """`"a", "b"`."""
    return ", ".join(f'"{name}"' for name in names)


def swapped_in(old: Tensor, given: Tensor, assign: bool) -> Tensor:
    """The tensor to exchange `old` with, as the classes of both want it (`module_load`)."""
    made = old.module_load(given, assign=assign)
    if made is old or made is given:
        raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one of "
                           "the inputs in module_load")
    return assigned(old, made)


def assigned(old: Tensor, given: Tensor) -> Tensor:
    """The tensor that takes the place of `old`: a parameter stays a parameter and keeps its `requires_grad`."""
    if not isinstance(old, Parameter):
        return given
    if not isinstance(given, Parameter):
        return Parameter(given, requires_grad=old.requires_grad)
    return given.requires_grad_(old.requires_grad)

"""`torch.nn.utils._named_member_accessor`: parts of a module by their dotted names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]
_MISSING = object()


def _check_name(name: str) -> None:
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def _table(module: Module, name: str) -> dict[str, Any] | None:
    """Where a module keeps a parameter or buffer of this name."""
    return next((table for table in (module._parameters, module._buffers) if name in table), None)


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Put a tensor in the place of another."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    _check_name(name)
    table = _table(module, name)
    if table is None:
        setattr(module, name, tensor)
    else:
        table[name] = tensor


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of another, which is returned."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    _check_name(name)
    table = _table(module, name)
    if table is None:
        kept = getattr(module, name, _MISSING)
        if kept is _MISSING and not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if kept is not _MISSING and not isinstance(kept, Tensor) and kept is not None:
            raise TypeError(f"attribute `{name}`: {kept} is not an instance of torch.Tensor")
        if tensor is not _MISSING:
            setattr(module, name, tensor)
        elif kept is not _MISSING:
            delattr(module, name)
        return kept
    kept = table[name]
    if tensor is _MISSING:
        del table[name]
    else:
        table[name] = tensor
    return kept


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Put a module in the place of another, which is returned."""
    for one in (module, submodule):
        if not isinstance(one, Module):
            raise TypeError(f"{one} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError(f'submodule name can\'t contain ".", got: {name}')
    if name == "":
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    kept = module._modules[name]
    if not isinstance(kept, Module):
        raise TypeError(f"{name} attribute is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return kept


class NamedMemberAccessor:
    """Reads and replaces parameters, buffers and submodules by names like `"layer.weight"`."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {}

    def _parent(self, name: str) -> tuple[Module, str]:
        path, _, last = name.rpartition(".")
        return self.get_submodule(path), last

    def get_submodule(self, name: str) -> Module:
        """The submodule; the module itself under the empty name."""
        if not name:
            return self.module
        if name in self.memo:
            return self.memo[name]
        parent, last = self._parent(name)
        try:
            found = getattr(parent, last)
        except AttributeError as error:
            raise AttributeError(f"{self.module._get_name()} has no attribute `{last}`") from error
        if not isinstance(found, Module):
            raise TypeError(f"submodule `{name}`: {found} is not an instance of torch.nn.Module")
        self.memo[name] = found
        return found

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Put a module in the place of another, which is returned."""
        parent, last = self._parent(path)
        return swap_submodule(parent, last, value)

    def get_tensor(self, name: str) -> Tensor | None:
        """The tensor."""
        parent, last = self._parent(name)
        try:
            found = getattr(parent, last)
        except AttributeError as error:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`") from error
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"attribute `{name}`: {found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Put a tensor in the place of another."""
        set_tensor(*self._parent(name), value)

    def del_tensor(self, name: str) -> None:
        """Take a tensor away."""
        parent, last = self._parent(name)
        try:
            delattr(parent, last)
        except AttributeError as error:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`") from error

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Put a tensor in the place of another, which is returned."""
        return swap_tensor(*self._parent(name), value, allow_missing=allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor | None]:
        """Several tensors."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Several tensors in the places of others."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise ValueError(f"names and values must have the same length, got {len(names)} and {len(values)}")
        for name, value in zip(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Several tensors in the places of others."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Take several tensors away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """Several tensors in the places of others, which are returned."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise ValueError(f"names and values must have the same length, got {len(names)} and {len(values)}")
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values)]

    def swap_tensors_dict(self, named_tensors: dict[str, Any],
                          allow_missing: bool = False) -> tuple[dict[str, Any], list[str]]:
        """The same by names; if one is missing, nothing is changed."""
        kept: dict[str, Any] = {}
        missing = []
        try:
            for name, value in named_tensors.items():
                kept[name] = self.swap_tensor(name, value, allow_missing=True)
                if kept[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, value in kept.items():
                self.swap_tensor(name, value, allow_missing=True)
            raise
        return kept, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The names that are missing among the given ones, and those that the module does not have."""
        given = set(keys)
        valid = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - given), sorted(given - valid)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """The parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """The buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """Parameters and buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Module]]:
        """The submodules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)

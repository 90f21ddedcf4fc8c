"""Pruning: parameters whose entries are switched off by a mask.

`name` is replaced by a parameter `name_orig` and a buffer `name_mask`; before every forward the module gets the
product of the two as attribute `name`.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from typing import Any

from ..._dispatch.namespace import aten
from ...nn.modules.module import Module
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]


class BasePruningMethod:
    """A way to choose what is pruned. A subclass sets `PRUNING_TYPE` and defines `compute_mask`."""

    _tensor_name: str
    PRUNING_TYPE: str = "unstructured"

    def __call__(self, module: Module, inputs: Any) -> None:
        """Before forward: put the masked parameter in place."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for scores `t`, on top of an older mask."""
        raise NotImplementedError

    def apply_mask(self, module: Module) -> Any:
        """The masked parameter."""
        if not hasattr(self, "_tensor_name"):
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module, in addition to earlier prunings."""
        old = [(number, hook) for number, hook in module._forward_pre_hooks.items()
               if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(old) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. "
                                 "Use a PruningContainer.")
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if old:
            number, hook = old[0]
            del module._forward_pre_hooks[number]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
            original = getattr(module, name + "_orig")
            default_mask = getattr(module, name + "_mask").detach().clone()
        else:
            original = getattr(module, name)
            default_mask = aten.ones_like(original)
        if importance_scores is not None:
            if importance_scores.shape != original.shape:
                raise AssertionError(f"importance_scores should have the same shape as parameter                     "
                                     f"{name} of {module}")
        else:
            importance_scores = original
        if not old:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
        except Exception:
            if not old:
                module.register_parameter(name, original)
                del module._parameters[name + "_orig"]
            raise
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned copy of a tensor, without a module."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        scores = t if importance_scores is None else importance_scores
        mask = default_mask if default_mask is not None else aten.ones_like(t)
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Make the pruning permanent: the masked values become the parameter."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, one after the other."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        methods: Iterable[Any] = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for number, method in enumerate(methods):
            if number == 0 and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add one for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError("Can only add pruning methods acting on the parameter named "
                             f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The last method's mask for what the earlier ones left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        slices: Any
        if method.PRUNING_TYPE == "unstructured":
            slices = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            kept = mask.sum(others) != 0 if others else mask != 0
            slices = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            slices = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        partial = method.compute_mask(t[slices], default_mask=mask[slices])
        mask[slices] = partial.to(dtype=mask.dtype)
        return mask


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    value: Any = amount
    if value < 0 or (not isinstance(amount, numbers.Integral) and value > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Refuse a number of entries that a tensor does not have."""
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """How many entries an absolute or relative amount means."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_structured_pruning(t: Any) -> None:
    """Refuse tensors without slices."""
    if t.dim() <= 1:
        raise ValueError("Structured pruning can only be applied to multidimensional tensors. Found tensor of "
                         f"shape {t.shape} with {t.dim()} dims")


def _validate_pruning_dim(t: Any, dim: int) -> None:
    """Refuse a dimension that a tensor does not have."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _count(amount: Any, size: int) -> int:
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


def _without_some(t: Any, default_mask: Any, amount: Any, score: Callable[[Any], Any], largest: bool) -> Any:
    """A mask with more zeros, where the scores are largest or smallest."""
    count = _count(amount, t.nelement())
    mask = default_mask.clone()
    if count:
        chosen = aten.topk(score(t).view(-1), count, largest=largest).indices
        mask.view(-1)[chosen] = 0
    return mask


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The older mask."""
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes entries at random."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """A mask with more zeros, at random places."""
        return _without_some(t, default_mask, self.amount, aten.rand_like, largest=True)


class L1Unstructured(BasePruningMethod):
    """Prunes the entries nearest to zero."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """A mask without the smallest entries."""
        return _without_some(t, default_mask, self.amount, aten.abs, largest=False)


class _Structured(BasePruningMethod):
    """Prunes whole slices along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def scores(self, t: Any) -> Any:
        """How much each slice matters."""
        raise NotImplementedError

    def kept(self, scores: Any, count: int) -> Any:
        """An index of the slices that stay."""
        return aten.topk(scores, len(scores) - count).indices

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """A mask without the slices that matter least."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        scores = self.scores(t)
        if count == 0:
            return default_mask
        kept = self.kept(scores, count)
        mask = aten.zeros_like(t)
        chosen = [slice(None)] * t.dim()
        chosen[self.dim] = kept
        mask[tuple(chosen)] = 1.0
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


class RandomStructured(_Structured):
    """Prunes slices at random."""

    def scores(self, t: Any) -> Any:
        """Random numbers."""
        return aten.rand(t.shape[self.dim], device=t.device)

    def kept(self, scores: Any, count: int) -> Any:
        """Those above the last that goes."""
        return scores > aten.kthvalue(scores, count).values


class LnStructured(_Structured):
    """Prunes the slices of smallest norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Any) -> Any:
        """Norms of the slices."""
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return aten.norm(t, self.n, others)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Both masks together."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape "
                                 f"{self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Any:
    """Add a pruning that prunes nothing."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Any:
    """Prune random entries: a number of them, or a share."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the smallest entries: a number of them, or a share."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Any:
    """Prune random slices along a dimension."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune the slices of smallest norm along a dimension."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Any:
    """Prune by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters, given as (module, name) pairs, as if they were one."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    known = {} if importance_scores is None else importance_scores
    if not isinstance(known, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    tensors = [getattr(module, name) for module, name in pairs]
    scores = parameters_to_vector([known.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)])
    before = parameters_to_vector([getattr(module, name + "_mask", aten.ones_like(tensor))
                                   for (module, name), tensor in zip(pairs, tensors, strict=True)])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
                        f"{pruning_method} of type {method.PRUNING_TYPE}")
    container.add_pruning_method(method)
    mask = container.compute_mask(scores, before)
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        custom_from_mask(module, name, mask=mask[start:start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def remove(module: Any, name: str) -> Any:
    """Make the pruning of a parameter permanent."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether some parameter in the module is pruned."""
    return any(isinstance(hook, BasePruningMethod) for _, part in module.named_modules()
               for hook in part._forward_pre_hooks.values())

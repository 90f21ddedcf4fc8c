"""Kullback-Leibler divergences between distributions: `kl_divergence(p, q)`, found by the two classes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]
_KL_REGISTRY: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator that adds the divergence of a pair of classes."""
    for number, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):  # any class: libraries have other distributions
            raise TypeError(f"Expected {number} to be a Distribution subclass but got {kind}")

    def add(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        _dispatch.cache_clear()
        return formula

    return add


def _nearer(kind: type, first: type, second: type) -> type:
    """Which of two bases of a class is the more specific one."""
    order = kind.__mro__
    return first if order.index(first) <= order.index(second) else second


@functools.cache
def _dispatch(type_p: type, type_q: type) -> Formula | None:
    """The most specific formula; where two orders of specificity disagree, the one of the left argument, warning."""
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return None
    left = right = matches[0]
    for match in matches[1:]:
        if _nearer(type_p, match[0], left[0]) is match[0] and (
                match[0] is not left[0] or _nearer(type_q, match[1], left[1]) is match[1]):
            left = match
        if _nearer(type_q, match[1], right[1]) is match[1] and (
                match[1] is not right[1] or _nearer(type_p, match[0], right[0]) is match[0]):
            right = match
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl("
                      f"{left[0].__name__}, {right[1].__name__})", RuntimeWarning, stacklevel=3)
    return _KL_REGISTRY[left]


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The formula for two classes, or NotImplemented."""
    found = _dispatch(type_p, type_q)
    return NotImplemented if found is None else found


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of q from p: the mean under p of log p - log q.

    >>> import mindtorch_v2 as torch
    >>> normal = torch.distributions.Normal
    >>> torch.distributions.kl_divergence(normal(0.0, 1.0), normal(1.0, 1.0))
    tensor(0.5000)
    """
    type_p: Any = type(p)
    type_q: Any = type(q)
    formula = _dispatch(type_p, type_q)
    if formula is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
                                  f"{type(q).__name__}")
    return formula(p, q)


def __getattr__(name: str) -> Any:
    # PyTorch's names of the formulas. The formulas need all distributions, which need this module.
    if name.startswith("_kl_"):
        from . import _kl_formulas

        if name == "_kl_expfamily_expfamily":
            return _kl_formulas._kl_expfamily_expfamily
        wanted = name.removeprefix("_kl_").replace("_", "")
        for (type_p, type_q), formula in _KL_REGISTRY.items():
            if f"{type_p.__name__}{type_q.__name__}".lower() == wanted:
                return formula
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

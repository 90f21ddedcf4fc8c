"""torch.nn: modules, parameters and what belongs to them."""

from __future__ import annotations

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403 (the list of modules is in one place, `modules.__all__`)
from .parameter import Buffer, Parameter, UninitializedParameter

__all__ = [
    *modules.__all__,
    "Buffer",
    "Parameter",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]

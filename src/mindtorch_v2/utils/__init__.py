"""`torch.utils`: loading data, recomputing activations, walking nested containers, timing."""

from __future__ import annotations

import importlib
from typing import Any

# Loaded when first asked for: most programs touch one of them.
_SUBMODULES = frozenset({"_contextlib", "_dtype_abbrs", "_foreach_utils", "_import_utils", "_mode_utils",
                         "_python_dispatch", "_pytree", "_thunk", "_traceback", "_triton", "benchmark", "checkpoint",
                         "collect_env", "cpp_extension", "data", "deterministic", "dlpack", "hooks", "model_zoo",
                         "tensorboard", "weak"})
_FUNCTIONS = {"set_module": "_naming", "swap_tensors": "_swapping"}  # by file


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_FUNCTIONS})

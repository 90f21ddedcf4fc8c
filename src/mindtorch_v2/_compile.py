"""`torch.compile`: returns its argument, because there is no compiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


class _Told:
    """Whether the warning was given; once is enough, however many models are compiled."""

    already = False


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = "inductor", mode: str | None = None, options: dict[str, Any] | None = None,
            disable: bool = False) -> Any:
    """The function or module, unchanged; without one, a decorator. Warns once that nothing is compiled."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if not disable and not _Told.already:
        _Told.already = True
        warnings.warn("torch.compile: this runtime has no compiler; functions and modules run as they are.",
                      stacklevel=2)
    if model is None:
        return lambda function: function
    if not callable(model):
        raise TypeError(f"torch.compile: expected a function or a module, got {type(model).__name__}")
    return model

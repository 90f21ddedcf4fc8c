"""`functionalize`: for a tracer, a function without changes in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the results of `func`, and with its changes of its arguments.

    Which ops it runs on the way is only seen by what traces it, and nothing is traced here: it runs `func`.

    >>> import mindtorch_v2 as torch
    >>> torch.func.functionalize(lambda x: x.add_(1))(torch.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
                           "Valid options are: remove='mutations' (no ops that change tensors in place) and "
                           "remove='mutations_and_views' (no views either).")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped

"""`torch.utils._python_dispatch`: classes that see every op of a program, which nothing here calls."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["TorchDispatchMode"]


class TorchDispatchMode:
    """Can be derived from and made, so that a program that has one can be imported; entering it raises.

    PyTorch's C++ dispatcher hands every op to the active mode. Ops here are compiled to functions that do not ask.
    `torch.profiler.ExecutionTraceObserver` notes every op with its inputs and outputs.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a derived class does for each op."""
        raise NotImplementedError(f"{type(self).__name__}.__torch_dispatch__")

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}: modes are called by PyTorch's C++ dispatcher, which this "
                                  "runtime does not have; torch.profiler.ExecutionTraceObserver notes every op with "
                                  "its inputs and outputs")

    def __exit__(self, *exc: object) -> None:
        return None

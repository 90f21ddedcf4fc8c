"""`torch.testing._internal.logging_tensor`: tensors and modes that note the ops they are given."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._tensor import Tensor
from ...utils._dtype_abbrs import dtype_abbrs
from ...utils._mode_utils import no_dispatch
from ...utils._python_dispatch import TorchDispatchMode
from ...utils._pytree import tree_map
from ...utils.weak import WeakTensorKeyDictionary

__all__ = ["LoggingTensor", "LoggingTensorMode", "LoggingTensorReentrant", "capture_logs",
           "capture_logs_with_logging_tensor_mode", "log_input", "no_dispatch"]


class _Log:
    """Lines such as `$1: f32[2] = torch._ops.aten.add.Tensor($0, 1)`, while somebody captures them."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []
        self.names: Any = WeakTensorKeyDictionary()
        self.numbers = itertools.count()
        self.all_tensors = False

    def name(self, value: Any) -> str:
        """A tensor by its number."""
        if value not in self.names:
            self.names[value] = next(self.numbers)
        return f"${self.names[value]}"

    def result(self, value: Any) -> str:
        """A tensor that was made: its number, dtype and shape."""
        if not self.numbered(value):
            return repr(value)
        return f"{self.name(value)}: {dtype_abbrs[value.dtype]}{list(value.shape)}"

    def numbered(self, value: Any) -> bool:
        """Whether a value is shown by a number: the tensors of the class, or all where a mode notes them."""
        return isinstance(value, Tensor if self.all_tensors else LoggingTensor)

    def shown(self, value: Any) -> str:
        """An argument. What is in lists stands there as text."""
        return str(tree_map(lambda one: self.name(one) if self.numbered(one) else repr(one), value))

    def call(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Note an op."""
        if not self.lines:
            return
        given = ", ".join([*map(self.shown, args), *(f"{key}={self.shown(one)}" for key, one in kwargs.items())])
        self.lines[-1].append(f"{tree_map(self.result, result)} = torch._ops.{func}({given})")


_LOG = _Log()


@contextmanager
def capture_logs(is_mode: bool = False, python_tb: bool = False, script_tb: bool = False,
                 cpp_tb: bool = False) -> Iterator[list[str]]:
    """The lines of the ops inside, numbered from 0."""
    before = _LOG.names, _LOG.numbers, _LOG.all_tensors
    _LOG.names, _LOG.numbers, _LOG.all_tensors = WeakTensorKeyDictionary(), itertools.count(), is_mode
    _LOG.lines.append([])
    try:
        yield _LOG.lines[-1]
    finally:
        _LOG.lines.pop()
        _LOG.names, _LOG.numbers, _LOG.all_tensors = before


def log_input(name: str, var: Any) -> None:
    """Give a tensor its number and its name."""
    if _LOG.lines:
        _LOG.lines[-1].append(f"{_LOG.result(var)} = input({name!r})")


class LoggingTensor(Tensor):
    """A tensor around another that notes the ops it takes part in."""

    elem: Any

    @staticmethod
    def __new__(cls: Any, elem: Any, *args: Any, **kwargs: Any) -> Any:
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=elem.device, requires_grad=kwargs.get("requires_grad", False))
        made.elem = elem.detach() if made.requires_grad else elem
        return made

    def __init__(self, elem: Any, *args: Any, **kwargs: Any) -> None:
        pass

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"LoggingTensor({self.elem!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op on what is inside, wrap the result, and note both."""
        kwargs = kwargs or {}
        bare = tree_map(lambda x: x.elem if isinstance(x, cls) else x, (args, kwargs))
        made = tree_map(lambda x: cls(x) if isinstance(x, Tensor) else x, func(*bare[0], **bare[1]))
        _LOG.call(func, args, kwargs, made)
        return made


class LoggingTensorReentrant(LoggingTensor):
    """The same; what runs inside is given to modes and classes again."""


class LoggingTensorMode(TorchDispatchMode):
    """Notes all ops inside."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op and note it."""
        made = func(*args, **(kwargs or {}))
        _LOG.call(func, args, kwargs or {}, made)
        return made


@contextmanager
def capture_logs_with_logging_tensor_mode(python_tb: bool = False, script_tb: bool = False,
                                          cpp_tb: bool = False) -> Iterator[list[str]]:
    """The lines of all ops inside."""
    with LoggingTensorMode(), capture_logs(True, python_tb, script_tb, cpp_tb) as logs:
        yield logs

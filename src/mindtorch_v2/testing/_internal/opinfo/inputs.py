"""What an op is called with in a test: samples, mistakes, and marks for single tests."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...._dtype import dtype
from ...._tensor import Tensor
from ..tensor_helpers import noncontiguous_like, torch_to_numpy_dtype_dict

XS, S, M, L = 3, 5, 10, 20
_NOTHING = object()  # an argument that was not given, where None is a value
NumericsFilter = namedtuple("NumericsFilter", ["condition", "safe_val"])


class DecorateInfo:
    """Decorators for those tests of an op that match a class, a name, a device and a dtype."""

    def __init__(self, decorators: Any, cls_name: str | None = None, test_name: str | None = None, *,
                 device_type: str | None = None, dtypes: Iterable[dtype] | None = None,
                 active_if: bool | Callable[[dict[str, Any]], bool] = True) -> None:
        self.decorators = list(decorators) if isinstance(decorators, Iterable) else [decorators]
        self.cls_name, self.test_name, self.device_type = cls_name, test_name, device_type
        self.dtypes = None if dtypes is None else set(dtypes)
        self.active_if = active_if

    def is_active(self, cls_name: str, test_name: str, device_type: str | None, dtype: Any,
                  param_kwargs: dict[str, Any]) -> bool:
        """Whether a test gets these decorators."""
        wanted = self.active_if(param_kwargs) if callable(self.active_if) else self.active_if
        return (bool(wanted) and self.cls_name in (None, cls_name) and self.test_name in (None, test_name)
                and self.device_type in (None, device_type) and (self.dtypes is None or dtype in self.dtypes))


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """`change` on every tensor and dtype of a nest of containers."""
    if isinstance(value, (Tensor, dtype)):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_changed(one, change) for one in value)
    if isinstance(value, dict):
        return {key: _changed(one, change) for key, one in value.items()}
    return value


def _array(value: Any) -> Any:
    """A tensor as an array, a dtype as NumPy's."""
    if isinstance(value, dtype):
        return torch_to_numpy_dtype_dict[value]
    wide = value.detach().float() if value.dtype.name == "bfloat16" else value.detach()
    return wide.numpy()


class SampleInput:
    """Arguments for one call: `SampleInput(input, *args, **kwargs)`, or with `args=` and `kwargs=` as containers."""

    def __init__(self, input: Any, *var_args: Any, args: tuple[Any, ...] | None = None,
                 kwargs: dict[str, Any] | None = None, output_process_fn_grad: Callable[[Any], Any] | None = None,
                 broadcasts_input: bool | None = None, name: str | None = None, **var_kwargs: Any) -> None:
        if (args is not None or kwargs is not None) and (var_args or var_kwargs):
            raise ValueError("SampleInput: arguments are given one by one, or as args= and kwargs=, not both")
        self.input = input
        self.args = var_args if args is None else tuple(args)
        self.kwargs = var_kwargs if kwargs is None else kwargs
        self.output_process_fn_grad = output_process_fn_grad or (lambda out: out)
        self.broadcasts_input = bool(broadcasts_input)
        self.name = name or ""

    def with_metadata(self, *, output_process_fn_grad: Callable[[Any], Any] | None = None,
                      broadcasts_input: bool | None = None, name: str | None = None) -> SampleInput:
        """The sample, with what tests besides need to know."""
        if output_process_fn_grad is not None:
            self.output_process_fn_grad = output_process_fn_grad
        if broadcasts_input is not None:
            self.broadcasts_input = broadcasts_input
        if name is not None:
            self.name = name
        return self

    def _described(self, say: Callable[[Any], Any]) -> str:
        parts = {"input": self.input, "args": self.args, "kwargs": self.kwargs}
        text = ", ".join(f"{key}={_changed(value, say)}" for key, value in parts.items())
        return f"SampleInput({text}, broadcasts_input={self.broadcasts_input}, name={self.name!r})"

    def __repr__(self) -> str:
        return self._described(lambda value: value)

    def summary(self) -> str:
        """The sample in a line: of tensors their shape and type."""
        return self._described(lambda one: f"Tensor[size={tuple(one.shape)}, device={one.device}, dtype={one.dtype}]"
                               if isinstance(one, Tensor) else one)

    def transform(self, f: Callable[[Any], Any]) -> SampleInput:
        """The same with `f` of each tensor and dtype."""
        return SampleInput(_changed(self.input, f), args=_changed(self.args, f), kwargs=_changed(self.kwargs, f),
                           output_process_fn_grad=self.output_process_fn_grad, broadcasts_input=self.broadcasts_input,
                           name=self.name)

    def numpy(self) -> SampleInput:
        """The same with arrays and NumPy's dtypes."""
        return self.transform(_array)

    def noncontiguous(self) -> SampleInput:
        """The same with tensors that have gaps in memory."""
        return self.transform(lambda one: noncontiguous_like(one) if isinstance(one, Tensor) else one)


class ErrorInput:
    """Arguments that an op must refuse, and how."""

    def __init__(self, sample_input: SampleInput, *, error_type: Any = RuntimeError, error_regex: str) -> None:
        self.sample_input, self.error_type, self.error_regex = sample_input, error_type, error_regex


def clone_sample(sample: SampleInput, **kwargs: Any) -> SampleInput:
    """A copy whose tensors are copies; `kwargs` replace or join its own."""
    copied = sample.transform(lambda one: one.detach().clone().requires_grad_(one.requires_grad)
                              if isinstance(one, Tensor) else one)
    copied.kwargs = {**copied.kwargs, **kwargs}
    return copied


def extremal(kind: dtype) -> list[Any]:
    """Numbers at the ends of a floating dtype; of a complex one, pairs of them."""
    ends = [np.inf, -np.inf, np.nan]
    return [complex(a, b) for a in [*ends, 1.0] for b in [*ends, 1.0]] if kind.is_complex else [*ends, 0.0, -0.0]

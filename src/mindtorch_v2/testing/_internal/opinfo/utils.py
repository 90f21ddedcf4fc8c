"""References for tests: NumPy's functions, called as the ops are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._dtype import get_default_dtype
from ..common_dtype import get_all_dtypes
from ..tensor_helpers import torch_to_numpy_dtype_dict


def np_unary_ufunc_integer_promotion_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that computes integers in the default floating dtype, as ops do."""
    @functools.wraps(fn)
    def promoted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if np.issubdtype(x.dtype, np.integer) or x.dtype == np.bool_:
            x = x.astype(torch_to_numpy_dtype_dict[get_default_dtype()])
        return fn(x, *args, **kwargs)

    return promoted


def reference_reduction_numpy(f: Callable[..., Any], supports_keepdims: bool = True) -> Callable[..., Any]:
    """A reduction of NumPy that is called with `dim` and `keepdim`."""

    @functools.wraps(f)
    def reduced(x: Any, *args: Any, **kwargs: Any) -> Any:
        names = {"dim": "axis", "keepdim": "keepdims", "mask": "where", "identity": "initial"}
        given = {names.get(key, key): value for key, value in kwargs.items()}
        keep = given.pop("keepdims", False) if not supports_keepdims else False
        axis = given.get("axis")
        if isinstance(axis, (list, tuple)):
            axis = given["axis"] = tuple(range(x.ndim)) if not axis else tuple(axis)
        if x.ndim == 0 and axis is not None:
            given["axis"] = None
        found = f(x, *args, **given)
        if keep:
            found = np.expand_dims(found, tuple(range(x.ndim)) if axis is None else axis)
        return np.asarray(found)

    return reduced


def prod_numpy(a: Any, *args: Any, **kwargs: Any) -> Any:
    """The product; of integers in int64, as the op's."""
    if "dtype" not in kwargs and np.issubdtype(a.dtype, np.integer):
        a = a.astype(np.int64)
    return reference_reduction_numpy(np.prod)(a, *args, **kwargs)


def get_supported_dtypes(op: Callable[..., Any], sample_inputs_fn: Any, device_type: str) -> set[Any]:
    """The dtypes for which an op takes all its samples."""
    found = set()
    for kind in get_all_dtypes():
        try:
            for sample in sample_inputs_fn(op, device_type, kind, False):
                op(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            continue
        found.add(kind)
    return found


__all__ = ["get_supported_dtypes", "np_unary_ufunc_integer_promotion_wrapper", "prod_numpy",
           "reference_reduction_numpy"]

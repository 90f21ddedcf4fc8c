"""Small helpers that tests of tensors share: parts of `common_utils`."""

# ruff: noqa: PT009 - these are helpers for unittest: its methods are what they call

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..._autograd import gradcheck as _checks
from ..._construct import tensor
from ..._dispatch.namespace import aten
from ..._dtype import ALL_DTYPES, dtype
from ..._tensor import Tensor

_WITHOUT_NUMPY = ("bfloat16",)
torch_to_numpy_dtype_dict = {kind: np.dtype(kind.np).type for kind in ALL_DTYPES if kind.name not in _WITHOUT_NUMPY}
numpy_to_torch_dtype_dict = {kind: own for own, kind in torch_to_numpy_dtype_dict.items()}
torch_to_numpy_dtype_dict.update({kind: np.float32 for kind in ALL_DTYPES if kind.name in _WITHOUT_NUMPY})


def numpy_to_torch_dtype(np_dtype: Any) -> dtype:
    """The element type for one of NumPy's."""
    try:
        return numpy_to_torch_dtype_dict[np_dtype]
    except KeyError:
        return numpy_to_torch_dtype_dict[np.dtype(np_dtype).type]


def has_corresponding_torch_dtype(np_dtype: Any) -> bool:
    """Whether there is such an element type."""
    try:
        numpy_to_torch_dtype(np_dtype)
    except (KeyError, TypeError):
        return False
    return True


def _as_tests_ask(kwargs: dict[str, Any]) -> dict[str, Any]:
    """What tests leave open or give as None: along one vector only, and with batches of gradients."""
    chosen = {key: value for key, value in kwargs.items() if value is not None}
    return {"check_batched_grad": True, "fast_mode": True, **chosen}


def gradcheck(fn: Any, inputs: Any, **kwargs: Any) -> bool:
    """`torch.autograd.gradcheck` with the options that PyTorch's tests have by default."""
    return _checks.gradcheck(fn, inputs, **_as_tests_ask(kwargs))


def gradgradcheck(fn: Any, inputs: Any, grad_outputs: Any = None, **kwargs: Any) -> bool:
    """`torch.autograd.gradgradcheck` with the options that PyTorch's tests have by default."""
    return _checks.gradgradcheck(fn, inputs, grad_outputs, **_as_tests_ask(kwargs))


def check_gradients(case: Any, apply_fn: Any, inputs: Any, **kwargs: Any) -> None:
    """First and second derivatives agree with differences."""
    case.assertTrue(gradcheck(apply_fn, inputs, **kwargs))
    case.assertTrue(gradgradcheck(apply_fn, inputs, **kwargs))


def iter_indices(tensor: Any) -> Iterable[Any]:
    """All positions of a tensor."""
    if tensor.dim() == 0:
        return range(0)
    return range(tensor.size(0)) if tensor.dim() == 1 else itertools.product(*map(range, tensor.size()))


def is_iterable(obj: Any) -> bool:
    """Whether one can go through it."""
    try:
        iter(obj)
    except TypeError:
        return False
    return True


def is_iterable_of_tensors(iterable: Any, include_empty: bool = False) -> bool:
    """Whether it is a container of tensors only; a tensor is none."""
    if isinstance(iterable, Tensor) or not is_iterable(iterable):
        return False
    found = list(iterable)
    return all(isinstance(one, Tensor) for one in found) if found else include_empty


def noncontiguous_like(t: Any) -> Any:
    """Equal, with gaps in memory; one that has them already is returned."""
    if not t.is_contiguous():
        return t
    inexact = t.dtype.is_floating_point or t.dtype.is_complex
    filler: Any = float("nan") if inexact else True if t.dtype.name == "bool" else 12
    spread = t.new_empty((*t.shape, 2))
    spread[..., 0] = filler
    spread[..., 1] = t.detach()
    strides = list(spread.stride())[:-1]
    if t.numel() == 1:
        strides[-1:] = [20] if strides else []  # a single element says nothing about contiguity otherwise
        spread = spread.clone()
    return aten.as_strided(spread, t.shape, strides, spread.storage_offset() + 1).requires_grad_(t.requires_grad)


def clone_input_helper(value: Any) -> Any:
    """Copies of tensors, in sequences too."""
    if isinstance(value, Tensor):
        return aten.clone(value)
    return tuple(map(clone_input_helper, value)) if isinstance(value, (list, tuple)) else value


def get_tensors_from(args: Any, kwargs: dict[str, Any]) -> set[Any]:
    """The tensors among a call's arguments."""
    return {one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)}


def bytes_to_scalar(byte_list: list[int], dtype: dtype, device: Any) -> Any:
    """The number that some bytes are in memory."""
    return aten.clone(aten.reshape(aten.view(tensor(byte_list, device=device).byte(), dtype), ()))


def outs_and_grads(fn: Any, graph_inps: Any, inps: Any) -> tuple[Any, list[Any]]:
    """What a function returns, and the gradients of the sum of it towards some inputs, which have none afterwards."""
    outs = fn(*graph_inps)
    for out in outs if isinstance(outs, (list, tuple)) else [outs]:
        if isinstance(out, Tensor) and out.requires_grad:
            aten.sum(out).backward(retain_graph=True)
    grads = [inp.grad for inp in inps if isinstance(inp, Tensor)]
    for inp in inps:
        if isinstance(inp, Tensor):
            inp.grad = None
    return outs, grads


def compare_equal_outs_and_grads(test: Any, m1: Any, m2: Any, inps: Any) -> None:
    """Two functions return the same and have the same gradients."""
    for mine, other in zip(outs_and_grads(m1, inps, inps), outs_and_grads(m2, inps, inps), strict=True):
        test.assertEqual(mine, other)


class BytesIOContext(io.BytesIO):
    """A file in memory that stays open after its `with`."""

    def __enter__(self) -> BytesIOContext:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


def chunk_list(lst: list[Any], nchunks: int) -> list[list[Any]]:
    """A list in parts, element by element in turn."""
    return [lst[start::nchunks] for start in range(nchunks)]


def first_sample(case: Any, samples: Iterator[Any]) -> Any:
    """The first of some samples; without one the test is skipped."""
    found = next(iter(samples), None)
    if found is None:
        case.skipTest("Skipped! Need at least 1 sample input for test.")
    return found


def do_test_empty_full(self: Any, dtypes: Any, layout: Any, device: Any) -> None:
    """`empty` and `full`, their `new_` forms and `_like` forms take dtype, layout and device."""
    shape = (2, 3)
    for kind in dtypes:
        made = aten.full(shape, 1, dtype=kind, layout=layout, device=device)
        for one in (aten.empty(shape, dtype=kind, layout=layout, device=device), made, made.new_full(shape, 1),
                    made.new_empty(shape), aten.empty_like(made), aten.full_like(made, 1)):
            self.assertIs(one.dtype, kind)
            self.assertIs(one.layout, layout)
            self.assertEqual(tuple(one.shape), shape)
        self.assertEqual(made, aten.ones(shape, dtype=kind, device=device))


def do_test_dtypes(self: Any, dtypes: Any, layout: Any, device: Any) -> None:
    """`zeros` has the dtype and layout that it was asked for."""
    for kind in dtypes:
        made = aten.zeros((2, 3), dtype=kind, layout=layout, device=device)
        self.assertIs(made.dtype, kind)
        self.assertIs(made.layout, layout)

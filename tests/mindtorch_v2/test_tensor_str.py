"""Tensors as text; the expected strings were taken from PyTorch 2.13."""

from __future__ import annotations

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from mindtorch_v2 import _tensor_str
from mindtorch_v2._tensor_str import (
    format_parameter,
    format_tensor,
    get_printoptions,
    printoptions,
    set_printoptions,
)


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


def text(values: object, dtype_name: str = "float32", **facts: object) -> str:
    dtype = getattr(ml_dtypes, dtype_name) if dtype_name == "bfloat16" else np.dtype(dtype_name)
    return format_tensor(np.array(values, dtype=dtype), dtype_name=dtype_name, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "dtype_name", "expected"),
    [
        ([[1, 2], [3, 4]], "float32", "tensor([[1., 2.],\n        [3., 4.]])"),
        ([1.5, 2], "float32", "tensor([1.5000, 2.0000])"),
        ([0.1, 1e5], "float32", "tensor([1.0000e-01, 1.0000e+05])"),
        ([1e-5], "float32", "tensor([1.0000e-05])"),
        ([3e8, 1e8], "float32", "tensor([3.0000e+08, 1.0000e+08])"),
        ([math.nan, math.inf, -math.inf, 1], "float32", "tensor([nan, inf, -inf, 1.])"),
        ([math.nan, 0.5], "float32", "tensor([   nan, 0.5000])"),
        ([-0.0, 0.0], "float32", "tensor([-0., 0.])"),
        (2.5, "float32", "tensor(2.5000)"),
        (7, "int64", "tensor(7)"),
        ([1, -20], "int64", "tensor([  1, -20])"),
        ([1, 2], "int32", "tensor([1, 2], dtype=torch.int32)"),
        ([True, False], "bool", "tensor([ True, False])"),
        ([1.5], "float16", "tensor([1.5000], dtype=torch.float16)"),
        ([1.0, 2.0], "bfloat16", "tensor([1., 2.], dtype=torch.bfloat16)"),
        ([1 + 2j, -0.5 - 1j], "complex64", "tensor([ 1.0000+2.j, -0.5000-1.j])"),
        (1j, "complex128", "tensor(0.+1.j, dtype=torch.complex128)"),
        ([], "float32", "tensor([])"),
        ([], "int64", "tensor([], dtype=torch.int64)"),
        (np.zeros((0, 3)), "float32", "tensor([], size=(0, 3))"),
        (np.zeros((2, 1, 2)), "float32", "tensor([[[0., 0.]],\n\n        [[0., 0.]]])"),
    ],
)
def test_values(values: object, dtype_name: str, expected: str) -> None:
    assert text(values, dtype_name) == expected


def test_default_dtype_decides_what_is_shown() -> None:
    assert text([1.0], "float64", default_dtype_name="float64") == "tensor([1.])"
    assert text([1.0], "float32", default_dtype_name="float64") == "tensor([1.], dtype=torch.float32)"
    assert text([1j], "complex128", default_dtype_name="float64") == "tensor([0.+1.j])"


def test_autograd_suffixes() -> None:
    assert text([1.0], requires_grad=True) == "tensor([1.], requires_grad=True)"
    assert text([1.0], requires_grad=True, grad_fn_name="MulBackward0") == "tensor([1.], grad_fn=<MulBackward0>)"


def test_parameter_has_a_line_of_its_own() -> None:
    expected = "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert format_parameter(np.ones(1, np.float32), dtype_name="float32") == expected


def test_device_and_meta() -> None:
    assert text([1.0], device="npu:0") == "tensor([1.], device='npu:0')"
    meta = format_tensor(None, dtype_name="float32", device="meta", shape=(2, 3))
    assert meta == "tensor(..., device='meta', size=(2, 3))"
    meta = format_tensor(None, dtype_name="int64", device="meta", shape=())
    assert meta == "tensor(..., device='meta', size=(), dtype=torch.int64)"


def test_values_are_needed_off_the_meta_device() -> None:
    with pytest.raises(ValueError, match="array may be None only on the meta device"):
        format_tensor(None, dtype_name="float32", shape=(2,))


def test_summary() -> None:
    assert text(np.arange(1001), "int64") == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    square = text(np.zeros((40, 40)))
    assert square.splitlines()[3] == "        ...,"
    assert square.splitlines()[0] == "tensor([[0., 0., 0.,  ..., 0., 0., 0.],"


def test_summary_reads_only_the_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = _tensor_str._choose_style

    def spy(values: np.ndarray) -> object:
        seen.append(values.size)
        return original(values)

    monkeypatch.setattr(_tensor_str, "_choose_style", spy)
    # A broadcast array of 10**12 elements: touching all of it would not end.
    huge = np.broadcast_to(np.float32(1.5), (10**6, 10**6))
    assert format_tensor(huge, dtype_name="float32").startswith("tensor([[1.5000, 1.5000, 1.5000,  ..., 1.5000,")
    assert seen == [36]


def test_long_suffix_goes_to_its_own_line() -> None:
    wide = text([[1.0] * 15], requires_grad=True)
    assert wide.endswith("1., 1.]],\n       requires_grad=True)")


def test_prefix_and_indent_move_the_lines() -> None:
    expected = "Mine([[1., 2.],\n        [3., 4.]])"
    assert text([[1, 2], [3, 4]], prefix="Mine(", indent=2) == expected


def test_options() -> None:
    set_printoptions(precision=2, sci_mode=True)
    assert text([1.0, 2.0]) == "tensor([1.00e+00, 2.00e+00])"
    set_printoptions(sci_mode=False)
    assert text([1e-3, 1e5]) == "tensor([     0.00, 100000.00])"
    set_printoptions(profile="short")
    assert get_printoptions() == {
        "precision": 2,
        "threshold": 1000,
        "edgeitems": 2,
        "linewidth": 80,
        "sci_mode": None,
    }
    set_printoptions(profile="full")
    assert get_printoptions()["threshold"] == math.inf


def test_printoptions_are_given_back_even_after_an_error() -> None:
    set_printoptions(precision=3, sci_mode=False)
    before = get_printoptions()
    with printoptions(precision=1, edgeitems=1):
        assert text([0.25]) == "tensor([0.2])"
    assert get_printoptions() == before
    with pytest.raises(KeyError), printoptions(precision=1, edgeitems=1):
        raise KeyError
    assert get_printoptions() == before


def test_no_edge_items() -> None:
    set_printoptions(edgeitems=0, threshold=2)
    assert text([1.0, 2.0, 3.0]) == "tensor([...], size=(3,))"
    assert text([1.0, 2.0]) == "tensor([1., 2.], size=(2,))"

"""Tensors as text, compared with PyTorch on many shapes, types, magnitudes and print options."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mindtorch_v2 import _tensor_str

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

DTYPE_NAMES = [
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int8", "uint8",
    "uint16", "bool", "complex64", "complex128",
]


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    yield
    for target in (torch, _tensor_str):
        target.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


def to_numpy(tensor: Any, dtype_name: str) -> np.ndarray:
    tensor = tensor.detach()
    if dtype_name.startswith(("bfloat", "float8")):
        same_width = torch.int16 if dtype_name == "bfloat16" else torch.uint8
        return tensor.view(same_width).numpy().view(getattr(ml_dtypes, dtype_name))
    return tensor.numpy()


def random_tensor(dice: random.Random, dtype_name: str) -> Any:
    shape = [dice.choice([0, 1, 2, 3, 5, 8, 20]) for _ in range(dice.randint(0, 4))]
    if dice.random() < 0.15:
        shape = [dice.choice([1001, 50, 2000])]
    values = torch.randn(shape, dtype=torch.float64) * 10.0 ** dice.choice([-6, -4, -3, -1, 0, 1, 2, 3, 5, 8, 12])
    if dice.random() < 0.4:
        values = values.round()
    if dice.random() < 0.3:
        values = values * 10.0 ** torch.randint(-3, 4, shape)
    if values.numel() and dice.random() < 0.3:
        flat = values.view(-1)
        for special in (float("nan"), float("inf"), -float("inf"), 0.0, -0.0):
            if dice.random() < 0.5:
                flat[dice.randrange(len(flat))] = special
    if dice.random() < 0.05:
        values = values * 0
    dtype = getattr(torch, dtype_name)
    if dtype.is_complex:
        imaginary = torch.randn(shape, dtype=torch.float64) * 10.0 ** dice.choice([-5, 0, 1, 4])
        return torch.complex(values, imaginary).to(dtype)
    if dtype.is_floating_point:
        return values.to(dtype)
    return values.nan_to_num(0.0).clamp(-1e15, 1e15).to(torch.int64).to(dtype)


def random_options(dice: random.Random) -> dict[str, Any]:
    return {
        "precision": dice.choice([None, None, 1, 2, 8]),
        "threshold": dice.choice([None, None, 0, 10, 100]),
        "edgeitems": dice.choice([None, None, 0, 1, 2, 5]),
        "linewidth": dice.choice([None, None, 20, 40, 120]),
        "profile": dice.choice([None, "default", "short", "full", "unheard-of"]),
        "sci_mode": dice.choice([None, None, None, True, False]),
    }


@pytest.mark.parametrize("dtype_name", DTYPE_NAMES)
def test_random_tensors(dtype_name: str) -> None:
    dice = random.Random(dtype_name)
    torch.manual_seed(0)
    for _ in range(60):
        tensor = random_tensor(dice, dtype_name)
        grad_fn_name = None
        if dtype_name in ("float32", "float64") and dice.random() < 0.4:
            tensor.requires_grad_()
            if dice.random() < 0.5:
                tensor = tensor * 1
                grad_fn_name = "MulBackward0"
        options = random_options(dice)
        for target in (torch, _tensor_str):
            target.set_printoptions(profile="default")
            target.set_printoptions(**options)
        default = dice.choice(["float32", "float32", "float64"])
        torch.set_default_dtype(getattr(torch, default))
        ours = _tensor_str.format_tensor(
            to_numpy(tensor, dtype_name),
            dtype_name=dtype_name,
            default_dtype_name=default,
            requires_grad=tensor.requires_grad,
            grad_fn_name=grad_fn_name,
        )
        assert ours == repr(tensor), (tuple(tensor.shape), options)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (5000, 5000)])
@pytest.mark.parametrize("dtype_name", ["float32", "int64", "complex64"])
def test_meta(shape: tuple[int, ...], dtype_name: str) -> None:
    tensor = torch.empty(shape, dtype=getattr(torch, dtype_name), device="meta")
    assert _tensor_str.format_tensor(None, dtype_name=dtype_name, device="meta", shape=shape) == repr(tensor)


@pytest.mark.parametrize("requires_grad", [True, False])
def test_parameter(requires_grad: bool) -> None:
    parameter = torch.nn.Parameter(torch.arange(60.0).view(3, 20), requires_grad=requires_grad)
    array = parameter.detach().numpy()
    ours = _tensor_str.format_parameter(array, dtype_name="float32", requires_grad=requires_grad)
    assert ours == repr(parameter)


def test_subclass_prefix() -> None:
    subclass = type("Mine", (torch.Tensor,), {})
    tensor = torch.arange(30.0).as_subclass(subclass)
    assert _tensor_str.format_tensor(np.arange(30, dtype=np.float32), dtype_name="float32", prefix="Mine(") == repr(
        tensor
    )


def test_not_contiguous() -> None:
    tensor = torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1)[::2]
    assert _tensor_str.format_tensor(tensor.numpy(), dtype_name="float32") == repr(tensor)


def test_context_manager_agrees() -> None:
    options: dict[str, Any] = {"precision": 2, "sci_mode": True}
    array = np.array([0.123456], np.float32)
    with torch._tensor_str.printoptions(**options), _tensor_str.printoptions(**options):
        assert _tensor_str.format_tensor(array, dtype_name="float32") == repr(torch.from_numpy(array))
    assert _tensor_str.get_printoptions() == torch._tensor_str.get_printoptions()

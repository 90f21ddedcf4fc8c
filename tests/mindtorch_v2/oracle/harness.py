"""Runs the same code on this runtime and on PyTorch and compares what comes out.

`check(lambda torch, x, y: torch.add(x, y), data(3, 4), data(3, 4))` calls the function once with each module, on
tensors of equal contents, and compares values, dtypes, shapes, gradients and, unless told otherwise, second gradients.
`check_error` compares exception types and, loosely, texts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

DEVICE = os.environ.get("MINDTORCH_TEST_DEVICE", "cpu")
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-11, "complex64": 2e-5,
             "complex128": 1e-11}


def data(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    """Reproducible random contents: `(array as float64/int64/bool, dtype name)`."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape).astype(bool)), dtype
    if dtype.startswith(("int", "uint")):
        low, high = (0 if dtype == "uint8" else low), max(high, low + 1)
        return np.asarray(rng.integers(int(low), int(high) + 1, shape)), dtype
    if dtype.startswith("complex"):
        return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)), dtype
    return np.asarray(rng.uniform(low, high, shape)), dtype


def values(content: Any, dtype: str = "float32") -> Any:
    """Given contents, e.g. with NaN, inf or exact ties."""
    return np.asarray(content), dtype


def make(torch: Any, given: Any, grad: bool) -> Any:
    """A tensor of the given contents on one of the two modules."""
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], np.ndarray)):
        if isinstance(given, list):
            return [make(torch, g, grad) for g in given]
        return given
    content, dtype = given
    made = torch.tensor(content.tolist(), dtype=getattr(torch, dtype))
    made = made.reshape(content.shape)
    if grad and (dtype.startswith(("float", "bfloat", "complex"))):
        made.requires_grad_(True)
    return made


def flat(result: Any) -> list[Any]:
    """All tensors and numbers in a nested result."""
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def to_numpy(tensor: Any) -> np.ndarray:
    """Contents as an array NumPy can compare."""
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if isinstance(tensor, theirs.Tensor):
        tensor = tensor + 0 if tensor.dtype.is_complex else tensor.clone()  # some that are all zero have no memory
    return (tensor.float() if name in ("bfloat16", "float16") else tensor).numpy()


def strides(tensor: Any) -> tuple[int, ...]:
    """The strides that are compared: not those of empty tensors, and on other devices results lie row after row."""
    return tuple(tensor.stride()) if DEVICE == "cpu" and tensor.numel() else ()


def is_tensor(value: Any) -> bool:
    return isinstance(value, (ours.Tensor, theirs.Tensor))


def assert_same(got: Any, want: Any, label: str, tolerance: float | None = None) -> None:
    """Two results of the two modules are equal in kind, dtype, shape and contents."""
    if not is_tensor(want):
        if type(want) in (tuple, list):
            assert type(got) is type(want), label
            assert len(got) == len(want), label
            for i, (one, other) in enumerate(zip(got, want, strict=True)):
                assert_same(one, other, f"{label}[{i}]", tolerance)
        elif isinstance(want, float):
            assert got == pytest.approx(want, rel=1e-5, nan_ok=True), label
        else:
            assert str(got) == str(want), label
        return
    assert is_tensor(got), f"{label}: expected a tensor, got {type(got).__name__}"
    assert str(got.dtype) == str(want.dtype), f"{label}: dtype {got.dtype}, PyTorch has {want.dtype}"
    assert tuple(got.shape) == tuple(want.shape), f"{label}: shape {tuple(got.shape)}, PyTorch has {tuple(want.shape)}"
    if DEVICE == "cpu" and label.startswith("output"):
        assert (got.is_conj(), got.is_neg()) == (want.is_conj(), want.is_neg()), f"{label}: conjugate or negative view"
    name = str(want.dtype).removeprefix("torch.")
    limit = tolerance if tolerance is not None else TOLERANCE.get(name, 0.0)
    np.testing.assert_allclose(to_numpy(got), to_numpy(want), rtol=limit, atol=limit, err_msg=label)


def floating(tensor: Any) -> bool:
    return is_tensor(tensor) and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def weights(torch: Any, outputs: list[Any]) -> list[Any]:
    """Fixed, uneven output gradients."""
    return [make(torch, data(*o.shape, dtype=str(o.dtype).removeprefix("torch."), seed=i + 7), False)
            for i, o in enumerate(outputs)]


def run(torch: Any, function: Callable[..., Any], given: tuple[Any, ...], grad: bool, second: bool) -> dict[str, Any]:
    """Everything that is compared, by label."""
    inputs = [make(torch, g, grad) for g in given]
    result = function(torch, *inputs)
    found = {f"output {i}": leaf for i, leaf in enumerate(flat(result))}
    leaves = [t for t in flat(inputs) if is_tensor(t) and t.requires_grad]
    outputs = [t for t in flat(result) if floating(t) and t.requires_grad]
    found["requires grad"] = [bool(t.requires_grad) for t in flat(result) if is_tensor(t)]
    found["grad_fn"] = [re.sub(r"\d+$", "", t.grad_fn.name()) if t.grad_fn is not None else None
                        for t in flat(result) if is_tensor(t)]
    if not (grad and leaves and outputs):
        return found
    grads = torch.autograd.grad(outputs, leaves, weights(torch, outputs), create_graph=second, allow_unused=True)
    found.update({f"gradient {i}": g for i, g in enumerate(grads)})
    again = [g for g in grads if g is not None and g.requires_grad]
    if second and again:
        seconds = torch.autograd.grad(again, leaves, weights(torch, again), allow_unused=True)
        found.update({f"second gradient {i}": g for i, g in enumerate(seconds)})
    return found


def made_elsewhere(names: list[str | None]) -> bool:
    """Whether results come from other nodes on purpose: elsewhere attention is made of products, packing of parts."""
    return DEVICE != "cpu" and any(
        (name or "").startswith(("ScaledDotProduct", "PackPadded")) for name in names)


def check(function: Callable[..., Any], *given: Any, grad: bool = True, second: bool = True,
          tolerance: float | None = None, nodes: bool = True) -> None:
    """Compare a function on both modules."""
    want = run(theirs, function, given, grad, second)
    got = run(ours, function, given, grad, second)
    assert got.keys() == want.keys()
    for label in want:
        if label == "grad_fn":
            assert not nodes or got[label] == want[label] or made_elsewhere(want[label]), "names of grad_fn"
        elif label == "requires grad":
            assert got[label] == want[label], label
        elif want[label] is None or got[label] is None:
            # An unused gradient may be None on one side and zeros on the other.
            present = got[label] if want[label] is None else want[label]
            assert present is None or not np.any(to_numpy(present)), label
        else:
            assert_same(got[label], want[label], label, tolerance)


def told_by_device(error: Any) -> bool:
    """Whether an NPU has found what is wrong with values: it tells when the host waits, in words of its own."""
    return isinstance(error, ours.AcceleratorError) and "returned 507015" in str(error)


def finished(result: Any) -> Any:
    """A result, when the device that computes it has done so."""
    if DEVICE == "npu":
        ours.npu.synchronize()
    return result


def check_error(function: Callable[..., Any], *given: Any, words: bool = True) -> None:
    """Both modules raise, with the same type (or a subclass of it) and, if `words`, the same gist."""
    with pytest.raises(Exception) as want:  # noqa: PT011
        function(theirs, *[make(theirs, g, False) for g in given])
    with pytest.raises(Exception) as got:  # noqa: PT011
        finished(function(ours, *[make(ours, g, False) for g in given]))
    if told_by_device(got.value):
        return
    assert issubclass(got.type, want.type), (
        f"{got.type.__name__}: {got.value}; PyTorch: {want.type.__name__}: {want.value}")
    if words:
        expected = set(re.findall(r"[a-z_]{4,}", str(want.value).split("\n")[0].lower()))
        present = set(re.findall(r"[a-z_]{4,}", str(got.value).lower()))
        common = len(expected & present) / max(len(expected), 1)
        assert common >= 0.5, f"ours: {got.value}\nPyTorch: {want.value}"

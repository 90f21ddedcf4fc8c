"""Kernels from oneDNN compute what the NumPy kernels compute; without the library those do all the work."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu import providers
from mindtorch_v2._backends.cpu.onednn import library as opening
from mindtorch_v2._backends.cpu.onednn import plan
from mindtorch_v2._backends.cpu.onednn.layouts import DESTINATION, FORWARD_TRAINING, SOURCE

functional = torch.nn.functional
needs_library = pytest.mark.skipif(opening.library() is None, reason="oneDNN is not installed: pip install .[fast]")
Arrays = list[np.ndarray]
GELU = 49  # the library's number of it


@pytest.fixture(autouse=True)
def asked_first(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library is asked for all convolutions, as where there are no C kernels."""
    monkeypatch.setattr(providers, "onednn", lambda: not providers.NUMPY_ONLY)
    if providers.native is None:
        yield
        return
    providers.native.switch_elementwise(False)  # kernels that look for themselves would come before it
    yield
    providers.native.switch_elementwise(True)


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(opening._state, "opened", None)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(function: Callable[..., Any], *arrays: np.ndarray) -> Arrays:
    """Result and gradients."""
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    made = function(*tensors)
    made.backward(torch.tensor(normal(*made.shape, seed=9)))
    return [made.detach().numpy(), *(t.grad.numpy() for t in tensors)]


def count_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with each primitive that is run."""
    runs: list[int] = []
    original = plan.Plan.run
    monkeypatch.setattr(plan.Plan, "run", lambda self, *arrays: (runs.append(1), original(self, *arrays))[1])
    return runs


def compare(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], arrays: Arrays, primitives: int) -> None:
    """With the library, which must have run this many primitives, and without."""
    runs = count_runs(monkeypatch)
    fast = run(function, *arrays)
    assert len(runs) == primitives
    monkeypatch.setitem(opening._state, "opened", None)
    slow = run(function, *arrays)
    assert len(runs) == primitives
    for got, want in zip(fast, slow, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-6 * max(1.0, float(np.abs(want).max())))


CONVOLUTIONS = [
    ((2, 16, 20, 20), (32, 16, 3, 3), {"padding": 1}),
    ((2, 3, 64, 64), (32, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((2, 32, 41, 43), (32, 8, 3, 3), {"stride": 2, "padding": 1, "dilation": 2, "groups": 4}),
    ((2, 64, 33, 33), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
]


@needs_library
@pytest.mark.parametrize(("shape", "weight", "options"), CONVOLUTIONS)
def test_convolution(monkeypatch: pytest.MonkeyPatch, shape: Any, weight: Any, options: Any) -> None:
    arrays = [normal(*shape), normal(*weight, seed=1), normal(weight[0], seed=2)]
    compare(monkeypatch, lambda x, w, b: functional.conv2d(x, w, b, **options), arrays, primitives=3)


@needs_library
@pytest.mark.parametrize("spatial", [1, 3])
def test_convolution_of_other_dimensions(monkeypatch: pytest.MonkeyPatch, spatial: int) -> None:
    size = {1: 1000, 3: 12}[spatial]
    convolve = getattr(functional, f"conv{spatial}d")
    arrays = [normal(2, 16, *(size,) * spatial), normal(32, 16, *(3,) * spatial, seed=1)]
    compare(monkeypatch, lambda x, w: convolve(x, w, padding=1), arrays, primitives=3)


@needs_library
def test_transposed_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [normal(2, 32, 16, 16), normal(32, 16, 4, 4, seed=1), normal(16, seed=2)]
    compare(monkeypatch, lambda x, w, b: functional.conv_transpose2d(x, w, b, stride=2, padding=1), arrays,
            primitives=3)


@needs_library
def test_output_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [normal(2, 32, 16, 16), normal(32, 16, 3, 3, seed=1)]
    compare(monkeypatch, lambda x, w: functional.conv_transpose2d(x, w, stride=3, output_padding=2), arrays,
            primitives=3)


@needs_library
def test_output_padding_with_room_for_another_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a transposed convolution is no convolution's gradient; only the gradient of its input is a convolution."""
    arrays = [normal(2, 32, 16, 16), normal(32, 16, 3, 3, seed=1)]
    compare(monkeypatch, lambda x, w: functional.conv_transpose2d(x, w, dilation=2, output_padding=1), arrays,
            primitives=1)


@needs_library
def test_strided_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [normal(20, 20, 16, 2), normal(3, 3, 16, 32, seed=1)]
    compare(monkeypatch, lambda x, w: functional.conv2d(x.permute(3, 2, 0, 1), w.permute(3, 2, 0, 1)), arrays,
            primitives=3)


@needs_library
def test_threads_share_plans() -> None:
    x, w = torch.tensor(normal(2, 16, 40, 40)), torch.tensor(normal(16, 16, 3, 3, seed=1))
    inputs = [x * k for k in range(1, 5)]
    wanted = [functional.conv2d(one, w).numpy() for one in inputs]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(20):
            if not np.array_equal(functional.conv2d(inputs[k], w).numpy(), wanted[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_library
def test_plans_are_freed() -> None:
    made = plan.planned(lambda found: plan.Plan(found, *_gelu_description(found)))()
    assert made is not None
    assert not opening.library().described  # type: ignore[union-attr]
    del made
    gc.collect()


def _gelu_description(found: Any) -> tuple[Any, ...]:
    flat = plan.plain(found, (64,))
    descriptor = found.describe("dnnl_eltwise_forward_primitive_desc_create", found.engine, FORWARD_TRAINING,
                                GELU, flat, flat, 0.0, 0.0, None)
    return descriptor, [plan.Role(SOURCE), plan.Role(DESTINATION, written=True)], [(64,), (64,)]


@needs_library
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_uses_numpy() -> None:
    program = (
        "import os, mindtorch_v2 as torch\n"
        "x = torch.randn(256, 256)\n"
        "y = x @ x\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if torch.allclose(x @ x, y, atol=1e-3) else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.usefixtures("without_library")
def test_without_the_library() -> None:
    x, w = torch.tensor(normal(2, 16, 20, 20)), torch.tensor(normal(32, 16, 3, 3, seed=1))
    assert functional.conv2d(x, w, padding=1).shape == (2, 32, 20, 20)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDTORCH_ONEDNN", "0")
    assert opening._open() is None


def test_a_library_that_does_not_load_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    path = tmp_path / "libdnnl.so.3"
    path.write_bytes(b"not a library")
    monkeypatch.setenv("MINDTORCH_ONEDNN", str(path))
    with pytest.warns(RuntimeWarning, match="oneDNN cannot be used"):
        assert opening._open() is None

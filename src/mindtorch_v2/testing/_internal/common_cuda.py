"""`torch.testing._internal.common_cuda`: there is no CUDA."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._dispatch.namespace import aten
from ...nn import Linear, MSELoss, Sequential
from ...optim import SGD

__all__ = ["TEST_CUDA", "TEST_CUDNN", "TEST_MULTIGPU", "tf32_is_not_fp32"]

TEST_CUDA = TEST_CUDNN = TEST_MULTIGPU = TEST_CUDA_GRAPH = False
PLATFORM_SUPPORTS_FLASH_ATTENTION = PLATFORM_SUPPORTS_MEM_EFF_ATTENTION = PLATFORM_SUPPORTS_CUDNN_ATTENTION = False
SM53OrLater = SM60OrLater = SM70OrLater = SM75OrLater = SM80OrLater = SM90OrLater = False
CDNA2OrLater = PLATFORM_SUPPORTS_FP8 = PLATFORM_SUPPORTS_BF16 = IS_JETSON = IS_SM89 = IS_THOR = False
CUDA_DEVICE = None
TEST_CUDNN_VERSION = 0


def tf32_is_not_fp32() -> bool:
    """Whether matrix products of float32 may be less exact: no."""
    return False


def tf32_on_and_off(tf32_precision: float = 1e-5, *args: Any, **kwargs: Any) -> Any:
    """Run a test with and without reduced precision: there is none, so it runs once."""
    return lambda function: function


def with_tf32_off(f: Any) -> Any:
    """Run a test without reduced precision, as all are."""
    return f


def xfailIfSM89(func: Any) -> Any:
    """Expect a failure on some device: there is none, so the test runs."""
    return func


def _get_torch_cuda_version() -> tuple[int, int]:
    return 0, 0


def _get_torch_rocm_version() -> tuple[int, int]:
    return 0, 0


def _get_magma_version() -> tuple[int, int]:
    return 0, 0


def _needs_cuda(*args: Any, **kwargs: Any) -> Any:
    raise unittest.SkipTest("CUDA is not available here")


def _create_scaling_models_optimizers(device: Any = "cpu", optimizer_ctor: Any = SGD,
                                      optimizer_kwargs: dict[str, Any] | None = None) -> tuple[Any, ...]:
    """Two modules of the same weights, to be trained with and without scaled losses, and an optimizer for each."""
    plain, scaled = (Sequential(Linear(8, 8), Linear(8, 8)).to(device=device) for _ in range(2))
    scaled.load_state_dict(plain.state_dict())
    options = {"lr": 1.0, **(optimizer_kwargs or {})}
    return plain, scaled, *(optimizer_ctor(module.parameters(), **options) for module in (plain, scaled))


def _create_scaling_case(device: Any = "cpu", dtype: Any = None, optimizer_ctor: Any = SGD,
                         optimizer_kwargs: dict[str, Any] | None = None) -> tuple[Any, ...]:
    """The same, four pairs of inputs and targets, a loss, and the step that tests give an infinite gradient."""
    made = _create_scaling_models_optimizers(device, optimizer_ctor, optimizer_kwargs)
    data = [tuple(aten.randn((8, 8), dtype=dtype, device=device) for _ in range(2)) for _ in range(4)]
    return *made, data, MSELoss().to(device), 2


# Helpers of tests that only CUDA runs.
blas_library_context = initialize_cuda_context_rng = _needs_cuda


@contextmanager
def tf32_off() -> Iterator[None]:
    """A block without reduced precision, as all are."""
    yield


tf32_on = tf32_off


def tf32_enabled() -> Any:
    """A block that would allow reduced precision: there is none."""
    return tf32_off()


def __getattr__(name: str) -> Any:
    """Flags and marks for missing devices, by the form of their names."""
    if name.startswith(("PLATFORM_SUPPORTS_", "TEST_", "SM", "IS_SM", "CDNA")):
        return False
    if name.startswith(("xfailIf", "xfailCUDA")):
        return xfailIfSM89
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

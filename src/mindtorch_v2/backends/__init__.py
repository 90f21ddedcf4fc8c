"""`torch.backends`: which libraries are behind the ops. Here it is NumPy alone, so most answers are no."""

from __future__ import annotations

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, python_native, quantized, xnnpack

__all__ = ["cpu", "cuda", "cudnn", "disable_global_flags", "flags_frozen", "fp32_precision", "mha", "mkl", "mkldnn",
           "mps", "nnpack", "openmp", "opt_einsum", "python_native", "quantized", "xnnpack"]

# How exact products of float32 are. There is one way here, so that setting it changes nothing.
fp32_precision = "none"
_frozen = False


def disable_global_flags() -> None:
    """Say that flags should be changed by contexts only. They change nothing here, so none is refused."""
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether `disable_global_flags` was called."""
    return _frozen

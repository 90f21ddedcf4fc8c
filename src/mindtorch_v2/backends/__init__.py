"""`torch.backends`: which libraries are behind the ops. Here it is NumPy alone, so most answers are no."""

from __future__ import annotations

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "fp32_precision", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum",
           "quantized"]

# How exact products of float32 are. There is one way here, so that setting it changes nothing.
fp32_precision = "none"

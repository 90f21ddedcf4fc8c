"""`torch.testing._internal.inductor_utils`: what there is for compilers. Nothing."""

from __future__ import annotations

GPU_TYPE = "cuda"
HAS_CPU = HAS_CUDA = HAS_CUDA_AND_TRITON = HAS_GPU = HAS_GPU_AND_TRITON = HAS_MULTIGPU = HAS_TRITON = False
HAS_XPU_AND_TRITON = RUN_CPU = RUN_GPU = False

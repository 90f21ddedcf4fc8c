"""`torch.testing._internal.triton_utils`: marks of tests that need Triton, which is not here."""

from __future__ import annotations

import unittest

HAS_CUDA = HAS_GPU = False
requires_cuda = requires_gpu = requires_cuda_and_triton = requires_gpu_and_triton = unittest.skip("requires a GPU")

"""Switches of `torch.npu` that kernels read."""

from __future__ import annotations

KEEP, LOWER = 0, 1  # whether products of float32 may be computed in a shorter format


class Switches:
    """What a program has chosen."""

    matmul_hf32 = False
    convolution_hf32 = True


def cube() -> int:
    """How matrix products may compute."""
    return LOWER if Switches.matmul_hf32 else KEEP


def cube_convolution() -> int:
    """How convolutions may compute."""
    return LOWER if Switches.convolution_hf32 else KEEP

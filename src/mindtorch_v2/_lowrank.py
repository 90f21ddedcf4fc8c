"""`torch._lowrank`: approximate singular values, under their second address."""

from __future__ import annotations

from ._ops.linalg_functions import get_approximate_basis, pca_lowrank, svd_lowrank

__all__ = ["get_approximate_basis", "pca_lowrank", "svd_lowrank"]

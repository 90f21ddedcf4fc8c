"""What PyTorch's side needs: torchvision's wheel for CUDA beside a PyTorch without it cannot load its compiled ops, and
its Python code stops at the first of them unless these ops are defined."""

from __future__ import annotations

import torch

IS_PYTORCH = "mindtorch" not in torch.__version__


def prepare() -> None:
    """Define the ops, if nobody else will."""
    if IS_PYTORCH:
        global _library
        _library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

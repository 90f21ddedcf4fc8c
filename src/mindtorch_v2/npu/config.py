"""`torch.npu.config`: formats of tensors. This runtime keeps all tensors in PyTorch's own layouts."""

from __future__ import annotations

allow_internal_format = False

"""`torch.backends.xnnpack`: a library of PyTorch's for phones, which is not used here."""

from __future__ import annotations

enabled = False

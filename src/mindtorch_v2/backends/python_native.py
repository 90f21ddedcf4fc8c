"""`torch.backends.python_native`: kernels written in other languages of Python's; there are none here."""

from __future__ import annotations

available_dsls: list[str] = []
all_dsls: list[str] = []

"""`torch.version`: the version of this runtime, and what it was built without."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

# The version of PyTorch whose API this follows, then our own; programs compare the former.
__version__ = "2.13.0+mindtorch.0.1.0"
debug = False
cuda: str | None = None
git_version: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None

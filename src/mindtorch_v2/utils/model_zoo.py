"""`torch.utils.model_zoo`: nothing is downloaded by this runtime."""

from __future__ import annotations

from .._absent import refusing
from ..hub import load_state_dict_from_url

try:
    from tqdm import tqdm  # torchvision's downloads show their progress with PyTorch's
except ImportError:
    tqdm = refusing("tqdm", ImportError, "torch.utils.model_zoo.tqdm: the package 'tqdm' is not installed")

__all__ = ["load_url", "tqdm"]

load_url = load_state_dict_from_url

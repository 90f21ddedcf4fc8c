"""`torch.utils.model_zoo`: nothing is downloaded by this runtime."""

from __future__ import annotations

from ..hub import load_state_dict_from_url

__all__ = ["load_url"]

load_url = load_state_dict_from_url

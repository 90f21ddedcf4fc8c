"""`torch.autograd.anomaly_mode`: looking for where NaN comes from."""

from __future__ import annotations

from .._autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]

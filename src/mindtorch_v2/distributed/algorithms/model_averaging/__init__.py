"""`torch.distributed.algorithms.model_averaging`: parameters that are averaged from time to time."""

from __future__ import annotations

from ...._outside import attributes

__getattr__ = attributes("distributed.algorithms.model_averaging", globals())

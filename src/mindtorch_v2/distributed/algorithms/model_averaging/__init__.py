"""`torch.distributed.algorithms.model_averaging`: parameters that are averaged now and then."""

from __future__ import annotations

from ...._outside import attributes

__getattr__ = attributes("distributed.algorithms.model_averaging", globals())

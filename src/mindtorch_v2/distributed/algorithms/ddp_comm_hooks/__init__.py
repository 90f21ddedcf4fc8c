"""`torch.distributed.algorithms.ddp_comm_hooks`: ways to reduce gradients."""

from __future__ import annotations

from ...._outside import attributes

__getattr__ = attributes("distributed.algorithms.ddp_comm_hooks", globals())

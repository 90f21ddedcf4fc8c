"""`torch.distributed.checkpoint`: the state of a model and its optimizers by names, for one process.

Writing and reading by several ranks is outside of this runtime.
"""

from __future__ import annotations

from ..._outside import attributes

__getattr__ = attributes("distributed.checkpoint", globals())

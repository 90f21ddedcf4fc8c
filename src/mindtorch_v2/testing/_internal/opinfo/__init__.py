"""`torch.testing._internal.opinfo`: what tests that run over many ops know of an op."""

from . import core, refs, utils

__all__ = ["core", "refs", "utils"]

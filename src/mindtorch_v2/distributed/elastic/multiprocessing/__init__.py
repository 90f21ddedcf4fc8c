"""Part of `torch.distributed.elastic`: what a main function is marked with."""

from __future__ import annotations

from ...._outside import attributes

__getattr__ = attributes("distributed.elastic.multiprocessing", globals())

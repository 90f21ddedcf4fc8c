"""Part of `torch.distributed.elastic`: the decorator of a main function."""

from __future__ import annotations

from ...._outside import attributes

__getattr__ = attributes("distributed.elastic.multiprocessing", globals())

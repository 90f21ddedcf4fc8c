"""`torch.utils.data.datapipes.map`: samples by key."""

from __future__ import annotations

from .order import ShufflerIterDataPipe as Shuffler
from .tables import BatcherMapDataPipe as Batcher
from .tables import ConcaterMapDataPipe as Concater
from .tables import MapperMapDataPipe as Mapper
from .tables import SequenceWrapperMapDataPipe as SequenceWrapper
from .tables import ZipperMapDataPipe as Zipper

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]

"""`torch.utils.data.datapipes.iter`: streams."""

from __future__ import annotations

from .combining import ConcaterIterDataPipe as Concater
from .combining import MultiplexerIterDataPipe as Multiplexer
from .combining import ZipperIterDataPipe as Zipper
from .splitting import DemultiplexerIterDataPipe as Demultiplexer
from .splitting import ForkerIterDataPipe as Forker
from .transforming import BatcherIterDataPipe as Batcher
from .transforming import CollatorIterDataPipe as Collator
from .transforming import FilterIterDataPipe as Filter
from .transforming import IterableWrapperIterDataPipe as IterableWrapper
from .transforming import MapperIterDataPipe as Mapper
from .transforming import UnBatcherIterDataPipe as UnBatcher

__all__ = ["Batcher", "Collator", "Concater", "Demultiplexer", "Filter", "Forker", "IterableWrapper", "Mapper",
           "Multiplexer", "UnBatcher", "Zipper"]

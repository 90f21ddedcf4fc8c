"""`torch.utils.data.datapipes.iter`: streams."""

from __future__ import annotations

from .combining import ConcaterIterDataPipe as Concater
from .combining import MultiplexerIterDataPipe as Multiplexer
from .combining import ZipperIterDataPipe as Zipper
from .files import FileListerIterDataPipe as FileLister
from .files import FileOpenerIterDataPipe as FileOpener
from .files import RoutedDecoderIterDataPipe as RoutedDecoder
from .files import StreamReaderIterDataPipe as StreamReader
from .ordering import GrouperIterDataPipe as Grouper
from .ordering import SamplerIterDataPipe as Sampler
from .ordering import ShardingFilterIterDataPipe as ShardingFilter
from .ordering import ShufflerIterDataPipe as Shuffler
from .splitting import DemultiplexerIterDataPipe as Demultiplexer
from .splitting import ForkerIterDataPipe as Forker
from .transforming import BatcherIterDataPipe as Batcher
from .transforming import CollatorIterDataPipe as Collator
from .transforming import FilterIterDataPipe as Filter
from .transforming import IterableWrapperIterDataPipe as IterableWrapper
from .transforming import MapperIterDataPipe as Mapper
from .transforming import UnBatcherIterDataPipe as UnBatcher

__all__ = ["Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker",
           "Grouper", "IterableWrapper", "Mapper", "Multiplexer", "RoutedDecoder", "Sampler", "ShardingFilter",
           "Shuffler", "StreamReader", "UnBatcher", "Zipper"]

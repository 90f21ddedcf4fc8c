"""`torch.utils.data.datapipes.iter.streamreader`: PyTorch's place for these pipes."""

from .files import StreamReaderIterDataPipe

__all__ = ["StreamReaderIterDataPipe"]

"""`torch.utils.data.datapipes.iter.grouping`: PyTorch's place for these pipes."""

from .ordering import GrouperIterDataPipe
from .transforming import BatcherIterDataPipe, UnBatcherIterDataPipe

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]

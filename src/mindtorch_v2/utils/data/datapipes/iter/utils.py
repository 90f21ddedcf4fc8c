"""`torch.utils.data.datapipes.iter.utils`: PyTorch's place for these pipes."""

from .transforming import IterableWrapperIterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]

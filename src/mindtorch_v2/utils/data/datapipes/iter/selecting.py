"""`torch.utils.data.datapipes.iter.selecting`: PyTorch's place for these pipes."""

from .transforming import FilterIterDataPipe

__all__ = ["FilterIterDataPipe"]

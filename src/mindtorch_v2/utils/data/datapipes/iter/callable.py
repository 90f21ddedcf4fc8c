"""`torch.utils.data.datapipes.iter.callable`: PyTorch's place for these pipes."""

from .transforming import CollatorIterDataPipe, MapperIterDataPipe

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]

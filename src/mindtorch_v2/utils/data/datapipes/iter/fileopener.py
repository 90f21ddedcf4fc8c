"""`torch.utils.data.datapipes.iter.fileopener`: PyTorch's place for these pipes."""

from .files import FileOpenerIterDataPipe

__all__ = ["FileOpenerIterDataPipe"]

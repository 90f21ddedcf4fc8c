"""`torch.utils.data.datapipes.iter.filelister`: PyTorch's place for these pipes."""

from .files import FileListerIterDataPipe

__all__ = ["FileListerIterDataPipe"]

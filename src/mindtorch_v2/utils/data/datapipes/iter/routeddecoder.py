"""`torch.utils.data.datapipes.iter.routeddecoder`: PyTorch's place for these pipes."""

from .files import RoutedDecoderIterDataPipe

__all__ = ["RoutedDecoderIterDataPipe"]

"""`torch.utils.data.datapipes.iter.sharding`: PyTorch's place for the pipe that divides a stream."""

from .ordering import SHARDING_PRIORITIES, ShardingFilterIterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]

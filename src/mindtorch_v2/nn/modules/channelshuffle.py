"""`torch.nn.modules.channelshuffle`."""

from __future__ import annotations

from .pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]

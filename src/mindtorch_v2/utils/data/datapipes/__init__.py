"""`torch.utils.data.datapipes`: streams and tables of samples that are chained by method calls."""

from __future__ import annotations

from . import iter, map
from .datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe", "iter", "map"]

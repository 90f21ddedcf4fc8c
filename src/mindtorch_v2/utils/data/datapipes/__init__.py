"""`torch.utils.data.datapipes`: streams and tables of samples that are chained by method calls."""

from __future__ import annotations

from . import iter, map
from .dataframe import DFIterDataPipe
from .datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe
from .determinism import guaranteed_datapipes_determinism, non_deterministic
from .validation import argument_validation, runtime_validation, runtime_validation_disabled

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
           "guaranteed_datapipes_determinism", "iter", "map", "non_deterministic", "runtime_validation",
           "runtime_validation_disabled"]

"""`torch.nn.parallel.scatter_gather`: dividing batches among devices, of which there is one."""

from __future__ import annotations

from . import gather, scatter, scatter_kwargs

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: object) -> bool:
    """Whether an object is a tuple whose fields have names."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")

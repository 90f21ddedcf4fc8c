"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
import os
from typing import IO, TypeAlias

from ._device import device as _device
from ._dtype import dtype as _dtype
from ._shape import Size
from ._storage import Storage
from ._tensor import Tensor

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
Number: TypeAlias = builtins.int | builtins.float | builtins.bool
_Number = (builtins.int, builtins.float, builtins.bool)
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Device: TypeAlias = _device | str | builtins.int | None
# Numbers that are known only when a graph runs are types of their own in PyTorch; here all numbers are known.
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
BoolLikeType: TypeAlias = builtins.bool
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]

__all__ = ["BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number", "Size", "Storage",
           "Tensor", "_TensorOrTensors", "_bool", "_complex", "_device", "_dtype", "_float", "_int", "_size"]

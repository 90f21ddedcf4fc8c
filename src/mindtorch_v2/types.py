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
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]

__all__ = ["Device", "FileLike", "Number", "Size", "Storage", "Tensor", "_TensorOrTensors", "_bool", "_complex",
           "_device", "_dtype", "_float", "_int", "_size"]

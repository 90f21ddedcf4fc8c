"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
import os
from typing import Any, TypeAlias, Union

from ._device import device as _device
from ._dtype import dtype as _dtype
from ._shape import Size
from ._storage import Storage
from ._tensor import Tensor

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
Number: TypeAlias = Union[builtins.int, builtins.float, builtins.bool]  # noqa: UP007 - a Union also at run time on 3.10
_Number = (builtins.int, builtins.float, builtins.bool)
FileLike: TypeAlias = Union[str, "os.PathLike[str]", Any]
Device: TypeAlias = Union[_device, str, builtins.int, None]
_size: TypeAlias = Union[Size, "list[int]", "tuple[int, ...]"]
_TensorOrTensors: TypeAlias = Union[Tensor, "tuple[Tensor, ...]"]

__all__ = ["Device", "FileLike", "Number", "Size", "Storage", "Tensor", "_TensorOrTensors", "_bool", "_complex",
           "_device", "_dtype", "_float", "_int", "_size"]

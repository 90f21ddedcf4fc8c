"""How a masked tensor is printed: as nested rows, with `--` where the mask leaves an element out."""

from __future__ import annotations

from typing import Any

from ..._dtype import FLOAT
from ..._tensor import strided

_OUT = "--"
_WIDTH = 8


def _rows(data: Any, mask: Any, shown: Any, indent: str) -> str:
    """The text of data with one dimension or more."""
    if data.dim() == 1:
        cells = [shown(one) if chosen else _OUT for one, chosen in zip(data.tolist(), mask.tolist(), strict=True)]
        width = max(_WIDTH, *map(len, cells)) if cells else _WIDTH
        return f"{indent}[{', '.join(cell.rjust(width) if cell == _OUT else cell for cell in cells)}]"
    inside = ",\n".join(_rows(data[i], mask[i], shown, indent + "  ") for i in range(data.shape[0]))
    return f"{indent}[\n{inside}\n{indent}]"


def described(data: Any, mask: Any) -> str:
    """The text of data with a mask."""
    if data.layout != strided:
        data, mask = data.to_dense(), mask.to_dense()
    shown = "{0:8.4f}".format if data.dtype.category >= FLOAT else str
    if data.dim() == 0:
        return f"MaskedTensor({shown(data.item()) if mask.item() else _OUT}, {mask.item()})"
    return f"MaskedTensor(\n{_rows(data, mask, shown, '  ')}\n)"

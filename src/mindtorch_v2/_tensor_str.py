"""Text form of a tensor: what ``repr(tensor)`` shows, from a NumPy array and a few facts about the tensor.

The work goes through four steps, each a function below: cut out the visible block (`_visible_block`), choose one
number style for it (`_choose_style`), turn it into cells of text (`_cells`), lay the cells out in brackets (`_layout`).
Only the visible block is ever converted, so printing a large tensor costs no more than printing its corners.

This module is a leaf: it imports NumPy and nothing of the package.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = [
    "PrintOptions",
    "format_parameter",
    "format_tensor",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]


@dataclasses.dataclass
class PrintOptions:
    """How tensors are printed; the defaults are those of the profile ``"default"``."""

    precision: int = 4
    """Digits after the decimal point."""
    threshold: float = 1000
    """A tensor with more elements than this is summarised."""
    edgeitems: int = 3
    """Elements kept at each end of a dimension of a summarised tensor."""
    linewidth: int = 80
    """Columns after which a row of elements, or a suffix, moves to the next line."""
    sci_mode: bool | None = None
    """Scientific notation always (True), never (False), or when the values call for it (None)."""


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

_options = PrintOptions()
PRINT_OPTS = _options


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change the print options; first ``profile`` is applied, then the options given by name.

    An option left out keeps its value, except ``sci_mode``: leaving it out makes it automatic again. A profile name
    that does not exist changes nothing, as in PyTorch.
    """
    changes = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    named = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes.update({name: value for name, value in named.items() if value is not None})
    for name, value in changes.items():
        setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The print options in force; ``set_printoptions(**get_printoptions())`` changes nothing."""
    return dataclasses.asdict(_options)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Use other print options (the arguments of `set_printoptions`) inside a ``with`` block."""
    saved = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**saved)


def format_tensor(
    array: np.ndarray | None,
    *,
    dtype_name: str,
    default_dtype_name: str = "float32",
    device: str = "cpu",
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    tangent: str | None = None,
    prefix: str = "tensor(",
    indent: int = 0,
    shape: Sequence[int] | None = None,
) -> str:
    """The repr of a tensor.

    Args:
        array: the values, in host memory. It may be None on the meta device, where ``shape`` is used instead.
        dtype_name: the element type without its ``torch.``; an array of another type that holds the same values will
            do (NumPy has no complex32).
        default_dtype_name: the default floating point type, which is not shown.
        device: shown unless it is the CPU.
        requires_grad: shown as ``requires_grad=True`` when there is no ``grad_fn_name``.
        grad_fn_name: the class name of the autograd node that made the tensor.
        tangent: the repr of its tangent in forward mode.
        prefix: the opening, with its parenthesis; subclasses put their own name there.
        indent: columns that already stand before the prefix; following lines move right by as many.
        shape: the shape on the meta device.
    """
    is_meta = device.partition(":")[0] == "meta"
    if array is None and not (is_meta and shape is not None):
        raise ValueError("format_tensor: array may be None only on the meta device, and then shape must be given")
    sizes = tuple(int(size) for size in (array.shape if array is not None else shape or ()))
    margin = indent + len(prefix)

    suffixes: list[str] = []
    if device.partition(":")[0] != "cpu":
        suffixes.append(f"device='{device}'")
    if is_meta:
        body, shows_size, is_inferable = "...", True, False
    elif array is None or array.size == 0:
        body, shows_size, is_inferable = "[]", len(sizes) != 1, False
    else:
        body, shows_size, is_inferable = _body(array, dtype_name, margin), _options.edgeitems == 0, True
    if shows_size:
        suffixes.append(f"size={sizes}")
    if not _is_default(dtype_name, default_dtype_name, is_inferable):
        suffixes.append(f"dtype=torch.{dtype_name}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _append_suffixes(prefix + body, suffixes, margin)


def format_parameter(array: np.ndarray | None, **facts: Any) -> str:
    """The repr of a parameter: a line that says so, then the tensor; ``facts`` are those of `format_tensor`."""
    facts.setdefault("requires_grad", True)
    return "Parameter containing:\n" + format_tensor(array, **facts)


def _is_default(dtype_name: str, default_dtype_name: str, is_inferable: bool) -> bool:
    """Whether a reader knows the type without being told; printed values also give away int64, bool and complex."""
    if dtype_name == default_dtype_name:
        return True
    default_complex = "complex128" if default_dtype_name == "float64" else "complex64"
    return is_inferable and dtype_name in ("int64", "bool", default_complex)


def _append_suffixes(text: str, suffixes: Sequence[str], margin: int) -> str:
    # Two columns are counted on top of the last line, and two for the separator: the widths at which PyTorch breaks.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * margin + suffix
            column = margin + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _body(array: np.ndarray, dtype_name: str, margin: int) -> str:
    """The bracketed values of a tensor that has some."""
    edge = _options.edgeitems
    is_summary = array.size > _options.threshold
    if is_summary and edge == 0 and array.ndim > 0:
        return "[...]"
    block, is_cut = _visible_block(array, edge) if is_summary else (array, (False,) * array.ndim)
    texts, cell_width = _cells(block, dtype_name)
    if block.ndim == 0:
        return texts[0]
    cells = np.empty(len(texts), dtype=object)
    cells[:] = texts
    return _layout(cells.reshape(block.shape), is_cut, margin, cell_width + len(", "))


def _visible_block(array: np.ndarray, edge: int) -> tuple[np.ndarray, tuple[bool, ...]]:
    """The elements a summary shows, and for each dimension whether something was left out in its middle."""
    is_cut = tuple(size > 2 * edge for size in array.shape)
    if array.ndim == 0:
        return array, is_cut
    kept = [
        np.concatenate([np.arange(edge), np.arange(size - edge, size)]) if cut else np.arange(size)
        for size, cut in zip(array.shape, is_cut, strict=True)
    ]
    return array[np.ix_(*kept)], is_cut


def _layout(cells: np.ndarray, is_cut: Sequence[bool], margin: int, column_width: int) -> str:
    """Put cells of text in nested brackets; ``margin`` is the column of the opening bracket."""
    edge = _options.edgeitems
    if cells.ndim == 1:
        row = cells.tolist()
        if is_cut[0]:
            row.insert(edge, " ...")
        per_line = max(1, (_options.linewidth - margin) // column_width)
        parts = [", ".join(row[start : start + per_line]) for start in range(0, len(row), per_line)]
    else:
        parts = [_layout(part, is_cut[1:], margin + 1, column_width) for part in cells]
        if is_cut[0]:
            parts.insert(edge, "...")
    # Rows are one line apart, matrices two, and so on: the blank lines show which dimension ended.
    separator = "," + "\n" * max(1, cells.ndim - 1) + " " * (margin + 1)
    return "[" + separator.join(parts) + "]"


def _cells(block: np.ndarray, dtype_name: str) -> tuple[list[str], int]:
    """The text of each element in row-major order, and the width a cell takes in a line."""
    if dtype_name.startswith("complex"):
        real, real_width = _number_cells(block.real)
        imaginary, imaginary_width = _number_cells(block.imag)
        texts = [left + _signed(right.lstrip()) + "j" for left, right in zip(real, imaginary, strict=True)]
        return texts, real_width + imaginary_width + len("j")
    if dtype_name.startswith(("float", "bfloat")):
        return _number_cells(block)
    plain = [str(value) for value in block.reshape(-1).tolist()]
    width = max(map(len, plain))
    return [text.rjust(width) for text in plain], width


def _signed(text: str) -> str:
    return text if text.startswith("-") else "+" + text


def _number_cells(block: np.ndarray) -> tuple[list[str], int]:
    # Every type that is printed fits in float64 without loss, so one rule serves half, bfloat16 and the 8-bit floats.
    values = block.astype(np.float64).reshape(-1)
    write, width = _choose_style(values)
    return [write(value).rjust(width) for value in values.tolist()], width


def _choose_style(values: np.ndarray) -> tuple[Callable[[float], str], int]:
    """The function that writes a number of this block, and the width of the widest.

    Zeros, infinities and nans have no say, neither in the style nor in the width; a block of nothing else is written
    as whole numbers, whatever ``sci_mode`` says.
    """
    precision = _options.precision

    def scientific(value: float) -> str:
        return f"{value:.{precision}e}"

    def whole(value: float) -> str:
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    def fixed(value: float) -> str:
        return f"{value:.{precision}f}"

    telling = values[np.isfinite(values) & (values != 0)]
    if telling.size == 0:
        return whole, 1
    magnitudes = np.abs(telling)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    is_scientific = _options.sci_mode
    if is_scientific is None:
        is_scientific = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
    if is_scientific:
        write = scientific
    elif bool(np.all(telling == np.ceil(telling))):
        write = whole
    else:
        write = fixed
    return write, max(len(write(value)) for value in telling.tolist())


def _tensor_str(tensor: Any, indent: int) -> str:
    """The bracketed values of a tensor, without the word around them."""
    array = tensor.detach().numpy()
    return _body(array, str(tensor.dtype).removeprefix("torch."), indent) if array.size else "[]"

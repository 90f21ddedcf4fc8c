"""Numbers with names, for columns."""

from __future__ import annotations

import enum
import sys

import numpy as np


class _Quiet(enum.EnumMeta):
    """A metaclass: no Python code runs when NumPy asks such a class whether it overrides arithmetic.

    `column == Kind.OP` makes NumPy look for attributes of the class. Before Python 3.12, Python code in `enum` answers,
    and NumPy drops its errors: it lost a Ctrl-C that came at that moment.
    """

    if sys.version_info < (3, 12):
        __getattr__ = type.__getattribute__


class Numbered(enum.Enum):
    """Names for PyTorch's numbers. They hold the numbers without being equal to them."""

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


class Code(enum.IntEnum, metaclass=_Quiet):
    """A number with a name, for comparison with columns."""


def unknown(codes: type[Code], values: np.ndarray) -> int | None:
    """A number in a column that is none of its codes; None if all are known.

    >>> from mtprof.schema import Kind
    >>> unknown(Kind, np.array([0, 200])), unknown(Kind, np.array([1]))
    (200, None)
    """
    if not len(values):
        return None
    low, high = int(values.min()), int(values.max())  # codes have no gaps, and 0 may mean none
    return low if low < 0 else high if high > max(codes) else None

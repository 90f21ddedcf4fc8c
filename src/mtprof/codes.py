"""Numbers with names, for columns."""

from __future__ import annotations

import enum
import sys


class _Quiet(enum.EnumMeta):
    """No Python code runs when NumPy asks such a class whether it overrides arithmetic.

    `column == Kind.OP` makes NumPy look for attributes of the class. Before Python 3.12 Python code of `enum` answers,
    and NumPy drops its errors: a Ctrl-C that fell into it was lost.
    """

    if sys.version_info < (3, 12):
        __getattr__ = type.__getattribute__


class Code(enum.IntEnum, metaclass=_Quiet):
    """A number with a name, to be compared with columns."""

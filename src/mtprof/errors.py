"""Errors about traces.

ValueError
 ├── BadFile        you gave a file that is not a trace, or a damaged one
 ├── BadTrace       a trace breaks a rule of the schema
 └── MissingTable   you asked for something that was not recorded, or that the file does not hold
RuntimeWarning
 └── CutShort       a file ends before its trace does; its complete part was read
"""

from __future__ import annotations


class BadFile(ValueError):
    """The file is not a trace, or it is damaged; the text names the file and the fault."""


class BadTrace(ValueError):
    """A trace breaks a rule of the schema; the text says which rule and where."""


class MissingTable(AttributeError, ValueError):
    """You asked a trace for something that was not recorded, or that the file it came from does not hold."""


class CutShort(RuntimeWarning):
    """A file ends before its trace does; its complete part was read.

    >>> print(CutShort("run.json"))
    run.json is cut short; its last rows are missing
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is cut short; its last rows are missing")

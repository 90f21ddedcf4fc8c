"""What can go wrong with traces.

ValueError
 ├── BadFile        you gave a file that is no trace, or a damaged one
 ├── BadTrace       a trace breaks a rule of the schema
 └── MissingTable   you asked for something that was not recorded, or that the file does not hold
RuntimeWarning
 └── CutShort       a file ends before its trace does; what is whole was read
"""

from __future__ import annotations


class BadFile(ValueError):
    """A file is no trace, or a damaged one; the text names the file and the fault."""


class BadTrace(ValueError):
    """A trace breaks a rule of the schema; the text says which, where."""


class MissingTable(AttributeError, ValueError):
    """You asked a trace for something that was not recorded, or that the file it came from does not hold."""


class CutShort(RuntimeWarning):
    """A file ends before its trace does, and what is whole in it was read.

    >>> print(CutShort("run.json"))
    run.json is cut short; its last rows are missing
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is cut short; its last rows are missing")

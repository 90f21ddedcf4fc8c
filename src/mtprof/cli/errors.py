"""How commands fail: one line, no traceback.

CommandError   what you asked for cannot be done; the text says why and, where there is a way, what to do
"""

from __future__ import annotations

import os

BAD_INPUT = 2  # exit code for wrong use and for input that cannot be used
INTERNAL = 70  # exit code for a fault of this program


class CommandError(Exception):
    """A command cannot do what it was asked for."""

    def __init__(self, text: str, code: int = BAD_INPUT) -> None:
        super().__init__(text)
        self.code = code


def one_line(text: str) -> str:
    """Text for a terminal: no line breaks, nothing that a terminal would obey, and no more than fits a few lines."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= 500 else shown[:497] + "..."


def os_error_text(error: OSError) -> str:
    """What went wrong with which file."""
    text = error.strerror or str(error)
    if error.filename is not None and os.fsdecode(error.filename) not in text:
        name = os.fsdecode(error.filename)
        return f"{name}: {text}"
    return text

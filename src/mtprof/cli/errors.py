"""How commands fail: one line, no traceback.

CommandError   the command cannot do what you asked; the text says why and, if possible, what to do instead
"""

from __future__ import annotations

import os

BAD_INPUT = 2  # exit code for wrong usage and unusable input
INTERNAL = 70  # exit code for an error in mtprof itself


class CommandError(Exception):
    """The command cannot do what was asked."""

    def __init__(self, text: str, code: int = BAD_INPUT) -> None:
        super().__init__(text)
        self.code = code


def one_line(text: str) -> str:
    """Text that is safe for a terminal: no line breaks, no control sequences, a few lines at most."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= 500 else shown[:497] + "..."


def os_error_text(error: OSError) -> str:
    """What went wrong, with the name of the file."""
    text = error.strerror or str(error)
    if error.filename is not None and os.fsdecode(error.filename) not in text:
        name = os.fsdecode(error.filename)
        return f"{name}: {text}"
    return text

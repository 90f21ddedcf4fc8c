"""Writes `late_names.py`: which ops are in which of the families that are loaded late, and which methods they bring.

`make docs` runs it as a module, `python -m mindtorch_v2._ops.find_late_names`.
"""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path

from .._dispatch.registry import CHOOSERS, OVERLOADS, public_names
from . import LATE_FAMILIES

HEADER = '"""What the families of ops that are loaded late have. Written by `make docs`; do not edit."""\n\n'


def text() -> str:
    """The file's text. Families are loaded one after the other, so none may be loaded yet."""
    methods = set(public_names("m"))
    lines = ["NAMES = {"]
    for family in LATE_FAMILIES:
        before = _overloads()
        importlib.import_module(f"{__package__}.{family}")
        new = sorted(name for name, count in _overloads().items() if before.get(name) != count)
        if new:
            lines += [f'    "{family}": (', *_wrapped(new, 8), "    ),"]
    lines += ["}", "METHODS = (", *_wrapped(sorted(set(public_names("m")) - methods), 4), ")"]
    return HEADER + "\n".join(lines) + "\n"


def _overloads() -> dict[str, int]:
    """How many overloads each name has; a name that chooses among them, one more."""
    return {name: len(OVERLOADS.get(name, ())) + (name in CHOOSERS) for name in {*OVERLOADS, *CHOOSERS}}


def _wrapped(names: list[str], indent: int) -> list[str]:
    """Lines of literals that together are the names with spaces between them: one string costs an import the least."""
    return [f'{" " * indent}"{line} "' for line in textwrap.wrap(" ".join(names), 100, break_on_hyphens=False)]


if __name__ == "__main__":
    target = Path(__file__).with_name("late_names.py")
    target.write_text(text(), encoding="utf-8")
    print(f"wrote {target.name}")

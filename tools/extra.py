"""Print what extras of the installed package require, for pip: installing them by name would build the C parts again.

    pip install $(python tools/extra.py lint)
"""

from __future__ import annotations

import sys
from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement


def required(extra: str) -> list[str]:
    """The requirements of one extra that hold on this machine."""
    found = [Requirement(text) for text in requires("mindtorch-v2") or ()]
    return [f"{one.name}{one.specifier}" for one in found
            if one.marker is not None and one.marker.evaluate({"extra": extra})
            and not one.marker.evaluate({"extra": ""})]


if __name__ == "__main__":
    print(*(one for extra in sys.argv[1:] for one in required(extra)))

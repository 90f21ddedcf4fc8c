"""How much a run of the tests tries: `make test` is quick; `make test-long`, with MINDTORCH_TEST_LONG=1, tries more."""

from __future__ import annotations

import os

LONG = os.environ.get("MINDTORCH_TEST_LONG", "0") not in ("", "0")


def examples(count: int) -> int:
    """So many examples of a property in a long run, and a fifth of them in a quick one."""
    return count if LONG else count // 5

"""Short programs of autograd from `autograd_programs.txt`, run on both: the last line's value is PyTorch's.

They are as those of `corner_programs.txt`. The first block is in front of all, `## common` of those of its part.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_semantics_programs_oracle import difference, ours, outcome, theirs

BLOCKS = re.split(r"\n\s*\n", (Path(__file__).parent / "autograd_programs.txt").read_text())
PROGRAMS: list[tuple[str, str]] = []
_common = ""
for _block in map(str.rstrip, BLOCKS[1:]):
    if _block.startswith("## common"):
        _common = _block.partition("\n")[2]
    elif _block.startswith("# "):
        _common = ""
    else:
        PROGRAMS.append((_common, _block))


@pytest.mark.parametrize(("common", "program"), PROGRAMS,
                         ids=[f"{number}-{program[:40]}" for number, (_, program) in enumerate(PROGRAMS)])
def test_program(common: str, program: str) -> None:
    whole = f"{BLOCKS[0]}\n{common}\n{program}"
    found = difference(outcome(ours, whole), outcome(theirs, whole))
    assert found is None, found


def test_there_are_many() -> None:
    assert len(PROGRAMS) > 400

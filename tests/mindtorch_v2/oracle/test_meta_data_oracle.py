"""On meta, ops whose results depend on data are refused: a shape made of zeros would be a guess."""

from __future__ import annotations

import pytest
from both import ours, theirs

CALLS = """
x[x > 0]
x[:, x[0] > 0]
x.nonzero()
x.nonzero(as_tuple=True)
torch.argwhere(x)
torch.where(x > 0)
x.masked_select(x > 0)
x.unique()
x.unique(dim=0)
torch.unique_consecutive(x)
torch.bincount(x[0].long())
torch.equal(x, x)
x.repeat_interleave(x[:, 0].long(), 0)
torch.combinations(x[0])
""".strip().splitlines()


@pytest.mark.parametrize("call", CALLS)
def test_refused(call):
    kinds = []
    for torch in (ours, theirs):
        with pytest.raises(RuntimeError) as raised:
            eval(call, {"torch": torch, "x": torch.ones(3, 4, device="meta")})
        kinds.append(raised.type.__name__)
    assert kinds[0] == kinds[1]

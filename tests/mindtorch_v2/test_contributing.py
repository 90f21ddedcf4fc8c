"""The recipe for a device in CONTRIBUTING works: the block is run, and the device used."""

from __future__ import annotations

import io
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn

F = nn.functional


@pytest.fixture(scope="module", autouse=True)
def box() -> None:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    part = text[text.index("## Add a device"):]
    block = re.search(r"```python\n(.*?)```", part, re.S)
    assert block is not None
    exec(compile(block[1], "CONTRIBUTING.md", "exec"), {"__name__": "recipe"})



def saved(where: str) -> Any:
    file = io.BytesIO()
    torch.save({"x": torch.arange(4.0, device=where)}, file)
    file.seek(0)
    return torch.load(file)["x"]


def step(where: str, optimizer: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(where)
    stepper = optimizer(model.parameters())
    F.cross_entropy(model(torch.ones(3, 4, device=where)), torch.tensor([0, 1, 1], device=where)).backward()
    stepper.step()
    return model[0].weight


PROBES: dict[str, Any] = {
    "zeros": lambda d: torch.zeros(2, 3, device=d),
    "ones": lambda d: torch.ones(2, device=d),
    "full": lambda d: torch.full((2,), 7, device=d),
    "arange": lambda d: torch.arange(5, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 4, device=d),
    "randn": lambda d: torch.randn(3, device=d, generator=torch.Generator(d).manual_seed(1)),
    "randint": lambda d: torch.randint(9, (4,), device=d, generator=torch.Generator(d).manual_seed(1)),
    "empty_like": lambda d: torch.empty_like(torch.ones(2, device=d)).fill_(3),
    "copy_": lambda d: torch.zeros(2, 2, device=d).copy_(torch.arange(2.0)),
    "copy from host": lambda d: torch.zeros(2, device=d).copy_(torch.ones(2, dtype=torch.int64)),
    "to": lambda d: torch.arange(3).to(d).to(torch.float16),
    "cpu": lambda d: torch.ones(2, device=d).cpu() + 1,
    "add number": lambda d: torch.ones(2, device=d) + 1.5,
    "right number": lambda d: 2 - torch.ones(2, device=d),
    "in place": lambda d: torch.ones(2, 2, device=d).add_(1).mul_(2),
    "in place view": lambda d: (x := torch.zeros(3, 3, device=d), x[1].add_(1), x.t()[0].sub_(2))[0],
    "out": lambda d: torch.add(torch.ones(2, device=d), 1, out=torch.empty(2, device=d)),
    "matmul": lambda d: torch.ones(2, 3, device=d) @ torch.ones(3, 2, device=d),
    "mask": lambda d: (x := torch.arange(4.0, device=d))[x > 1],
    "mask set": lambda d: (x := torch.arange(4.0, device=d), x.masked_fill_(x > 1, 9))[0],
    "index": lambda d: torch.arange(12.0, device=d).view(3, 4)[torch.tensor([2, 0], device=d), 1:],
    "index set": lambda d: (x := torch.zeros(3, 2, device=d), x.__setitem__((slice(1, None), 0), 5))[0],
    "where": lambda d: torch.where(torch.tensor([True, False], device=d), 1.0, torch.zeros(2, device=d)),
    "cat": lambda d: torch.cat([torch.ones(1, device=d), torch.zeros(2, device=d)]),
    "sort": lambda d: torch.tensor([3, 1, 2], device=d).sort()[1],
    "reduce": lambda d: torch.arange(6.0, device=d).view(2, 3).mean(1),
    "view": lambda d: torch.arange(6, device=d).view(2, 3).t().reshape(-1),
    "dropout": lambda d: F.dropout(torch.ones(4, device=d), 0.5, False),
    "softmax": lambda d: F.softmax(torch.arange(3.0, device=d), 0),
    "conv": lambda d: F.conv2d(torch.ones(1, 1, 4, 4, device=d), torch.ones(1, 1, 3, 3, device=d)),
    "embedding": lambda d: F.embedding(torch.tensor([1, 0], device=d), torch.arange(4.0, device=d).view(2, 2)),
    "layer norm": lambda d: F.layer_norm(torch.arange(4.0, device=d), (4,)),
    "SGD": lambda d: step(d, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    "AdamW": lambda d: step(d, torch.optim.AdamW),
    "fused Adam": lambda d: step(d, lambda p: torch.optim.Adam(p, fused=True)),
    "grad": lambda d: torch.autograd.grad((x := torch.ones(2, device=d, requires_grad=True)).pow(3).sum(), x)[0],
    "save": saved,
    "pickle": lambda d: pickle.loads(pickle.dumps(torch.arange(3.0, device=d))),
    "storage": lambda d: torch.arange(3.0, device=d)[1:].untyped_storage().nbytes() + torch.zeros(1, device=d),
}


@pytest.mark.parametrize("name", PROBES)
def test_probe(name: str) -> None:
    want, got = PROBES[name]("cpu"), PROBES[name]("box")
    if name != "cpu":
        assert got.device.type == "box"
    assert got.dtype is want.dtype
    assert torch.equal(got.cpu(), want), name


def test_there_are_as_many_probes_as_were_asked_for() -> None:
    assert len(PROBES) == 40


def test_it_prints_and_refuses_other_devices() -> None:
    x = torch.arange(3.0, device="box")
    assert repr(x) == "tensor([0., 1., 2.], device='box:0')"
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*box:0 and cpu"):
        x + torch.ones(3)
    with pytest.raises(TypeError, match="can't convert box:0 device type tensor to numpy"):
        x.numpy()

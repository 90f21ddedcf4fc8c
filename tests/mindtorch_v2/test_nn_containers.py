"""Containers of modules and of parameters. Nothing here needs PyTorch."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


class Scale(nn.Module):
    """`x * weight`."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size) * 2)

    def forward(self, x: Any) -> Any:
        return x * self.weight


def test_sequential() -> None:
    net = nn.Sequential(Scale(), nn.ReLU())
    assert net(torch.ones(2)).tolist() == [2.0, 2.0]
    assert isinstance(net[1], nn.ReLU)
    assert isinstance(net[-1], nn.ReLU)
    assert len(net[:1]) == 1
    net.append(nn.Identity()).insert(0, nn.Flatten(0))
    assert [type(m).__name__ for m in net] == ["Flatten", "Scale", "ReLU", "Identity"]
    assert list(net._modules) == ["0", "1", "2", "3"]
    del net[0]
    assert list(net._modules) == ["0", "1", "2"]
    assert isinstance(net.pop(2), nn.Identity)
    net[0] = nn.Tanh()
    assert isinstance(net[0], nn.Tanh)
    assert len(net + nn.Sequential(nn.ReLU())) == 3
    assert len(net * 2) == 4
    net += nn.Sequential(nn.ReLU())
    assert len(net.extend([nn.ReLU()])) == 4
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert isinstance(named.b, nn.Tanh)
    assert list(named[1:]._modules) == ["b"]
    with pytest.raises(IndexError, match="index 9 is out of range"):
        net[9]
    with pytest.raises(ValueError, match="only objects of Sequential"):
        net.__add__([nn.ReLU()])
    with pytest.raises(TypeError, match="is not a Module subclass"):
        nn.Sequential(3)


def test_module_list_and_dict() -> None:
    modules = nn.ModuleList([Scale() for _ in range(3)])
    assert len(list(modules.parameters())) == 3
    assert repr(modules) == "ModuleList(\n  (0-2): 3 x Scale()\n)"
    modules.insert(1, nn.ReLU())
    assert isinstance(modules[1], nn.ReLU)
    assert isinstance(modules[1:], nn.ModuleList)
    assert len(modules + nn.ModuleList([nn.ReLU()])) == 5
    del modules[0:2]
    assert list(modules._modules) == ["0", "1"]
    with pytest.raises(TypeError, match="called with an iterable"):
        modules.extend(3)
    named = nn.ModuleDict({"a": nn.ReLU()})
    named["b"] = nn.Tanh()
    named.update([("c", nn.Identity())])
    assert list(named) == ["a", "b", "c"]
    assert "a" in named
    assert isinstance(named.pop("a"), nn.ReLU)
    assert len(named) == 2
    with pytest.raises(ValueError, match="has length 3; 2 is required"):
        named.update([(1, 2, 3)])


def test_parameter_containers() -> None:
    values = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1, 3)), "text"])
    assert isinstance(values[0], nn.Parameter)
    assert [n for n, _ in values.named_parameters()] == ["0", "1"]
    assert repr(values) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2]\n"
        "    (1): Parameter containing: [torch.float32 of size 1x3]\n"
        "    (2): Object of type: str\n)")
    assert len(values[:2]) == 2
    with pytest.raises(RuntimeError, match="should not be called"):
        values(1)
    named = nn.ParameterDict({"b": torch.ones(1), "a": torch.ones(2)})
    assert list(named) == ["a", "b"], "plain dictionaries are sorted"
    assert list(named.state_dict()) == ["a", "b"]
    assert named.popitem()[0] == "b"
    named |= nn.ParameterDict({"z": torch.ones(1)})
    assert list(named.keys()) == ["a", "z"]
    assert named.get("q", 5) == 5
    del named["a"]
    assert len(named) == 1
    back = pickle.loads(pickle.dumps(named))
    assert list(back) == ["z"]

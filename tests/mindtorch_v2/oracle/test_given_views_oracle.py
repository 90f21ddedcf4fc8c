"""Which leaves get a view of a gradient as their `.grad`, without a copy, so that it shares memory with others."""

from __future__ import annotations

from typing import Any

import pytest
from both import same


def custom(torch: Any, kept: list[Any] | None = None) -> Any:
    class Stack(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return torch.stack([a, b])

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            found = grad[0], grad[1]
            if kept is not None:
                kept.append(found)
            return found

    return Stack.apply


def hooked(torch: Any, leaf: Any, hook: Any) -> Any:
    leaf.register_hook(hook)
    return leaf


# Shapes of the leaves -> shape of the gradient given, and the function between.
PROGRAMS = {
    "stack": ([(2, 2)] * 2, (2, 2, 2), lambda torch, a, b: torch.stack([a, b])),
    "stack in the middle": ([(2, 2)] * 2, (2, 2, 2), lambda torch, a, b: torch.stack([a, b], 1)),
    "stack of one twice": ([(2, 2)] * 2, (3, 2, 2), lambda torch, a, b: torch.stack([a, b, a])),
    "stack of a transposed one": ([(2, 3)] * 2, (2, 3, 2), lambda torch, a, b: torch.stack([a.t(), b.t()])),
    "cat": ([(2, 2), (1, 2)], (3, 2), lambda torch, a, b: torch.cat([a, b])),
    "cat of columns": ([(2, 2)] * 2, (2, 4), lambda torch, a, b: torch.cat([a, b], 1)),
    "cat of rows": ([(1, 2)] * 2, (1, 4), lambda torch, a, b: torch.cat([a, b], 1)),
    "cat, computed": ([(2, 2)] * 2, (4, 2), lambda torch, a, b: torch.cat([a, b]) * 2),
    "vstack": ([(2,)] * 2, (2, 2), lambda torch, a, b: torch.vstack([a, b])),
    "view": ([(4,)], (2, 2), lambda torch, a: a.view(2, 2)),
    "view of the same shape": ([(4,)], (4,), lambda torch, a: a.view(4)),
    "reshape": ([(4,)], (4,), lambda torch, a: a.reshape(4)),
    "flatten": ([(2, 2)], (4,), lambda torch, a: a.flatten()),
    "squeeze": ([(1, 4)], (4,), lambda torch, a: a.squeeze(0)),
    "unsqueeze": ([(4,)], (1, 4), lambda torch, a: a.unsqueeze(0)),
    "transpose": ([(2, 3)], (3, 2), lambda torch, a: a.t()),
    "expand": ([(4,)], (1, 4), lambda torch, a: a.expand(1, 4)),
    "sum": ([(1,)], (), lambda torch, a: a.sum()),
    "add": ([(4,)], (4,), lambda torch, a: a + 0),
    "views of two": ([(2, 2)] * 2, (4,), lambda torch, a, b: a.reshape(-1) + b.reshape(-1)),
    "parts": ([(4, 2)], (2, 2), lambda torch, a: sum(a.split(2))),
    "view as real": ([(2, 2, 2)], (2, 2), lambda torch, a: a.sum(2).view(4).view(2, 2)),
    "custom": ([(2, 2)] * 2, (2, 2, 2), lambda torch, a, b: custom(torch)(a, b)),
    "custom, computed": ([(2, 2)] * 2, (2, 2, 2), lambda torch, a, b: custom(torch)(a, b) * 2),
    "custom, kept": ([(2, 2)] * 2, (2, 2, 2), lambda torch, a, b: custom(torch, [])(a, b)),
    "hook": ([(2, 2)] * 2, (2, 2, 2), lambda torch, a, b: torch.stack([hooked(torch, a, lambda g: None), b])),
    "hook that keeps": ([(2, 2)] * 2, (2, 2, 2), lambda torch, a, b: torch.stack([hooked(torch, a, [].append), b])),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", ["backward", "inputs", "create_graph", "transposed leaves"])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_what_shares_memory(name: str, way: str, walk: str) -> None:
    shapes, shape, function = PROGRAMS[name]

    def run(torch: Any) -> Any:
        leaves = [torch.ones(size) for size in shapes]
        if way == "transposed leaves":
            leaves = [leaf.transpose(0, -1).contiguous().transpose(0, -1) if leaf.dim() else leaf for leaf in leaves]
        leaves = [leaf.requires_grad_() for leaf in leaves]
        given = torch.ones(shape)
        torch.autograd.backward(function(torch, *leaves), given, inputs=leaves if way == "inputs" else None,
                                create_graph=way == "create_graph")
        found = [*[leaf.grad for leaf in leaves], given]
        places = [one.untyped_storage().data_ptr() for one in found]
        facts = [(one.stride(), one.storage_offset(), one._is_view(), one._version) for one in found]
        found[0].add_(1)
        return [places.index(place) for place in places], facts, found

    same(run)

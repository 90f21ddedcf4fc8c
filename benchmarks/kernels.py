"""Kernels on arrays as models use them, forward and backward together where there is a gradient. One thread each.

The list is of what is hard to do well on NumPy: drawing numbers, sorting, adding at positions, windows, masks, scans,
recurrent layers. Each side is judged by the processor time of its best round, because the machine may be shared.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any

import torch as theirs

import mindtorch_v2 as ours

from .timing import Work, best_of, line

Case = Callable[[Any], Work]
Make = Callable[[Any], list[Any]]


def _backward(call: Callable[..., Any], *shapes: tuple[int, ...], make: Make | None = None) -> Case:
    """A function of random tensors of the given shapes and what else it needs, then its backward."""

    def build(torch: Any) -> Work:
        torch.manual_seed(0)
        leaves = [torch.randn(*shape).requires_grad_() for shape in shapes]
        others = make(torch) if make else []
        made = call(torch, *leaves, *others)
        pull = torch.ones_like(made)

        def step() -> None:
            call(torch, *leaves, *others).backward(pull)
            for leaf in leaves:
                leaf.grad = None

        return step

    return build


def _forward(call: Callable[..., Any], *shapes: tuple[int, ...], make: Make | None = None) -> Case:
    def build(torch: Any) -> Work:
        torch.manual_seed(0)
        given = [torch.randn(*shape) for shape in shapes] + (make(torch) if make else [])
        return lambda: call(torch, *given)

    return build


def _layer(make: Callable[[Any], tuple[Any, Any]]) -> Case:
    def build(torch: Any) -> Work:
        torch.manual_seed(0)
        layer, x = make(torch)

        def step() -> None:
            layer(x)[0].sum().backward()
            layer.zero_grad()

        return step

    return build


def _positions(*shape: int, below: int) -> Make:
    return lambda torch: [torch.randint(0, below, shape)]


ROWS = (256, 512)
IMAGES = (8, 16, 32, 32)
CASES: dict[str, Case] = {
    "randn of 4": _forward(lambda torch: torch.randn(4)),
    "randn of 1000": _forward(lambda torch: torch.randn(1000)),
    "randn of 100 000": _forward(lambda torch: torch.randn(100_000)),
    "rand of 100 000": _forward(lambda torch: torch.rand(100_000)),
    "randperm of 10 000": _forward(lambda torch: torch.randperm(10_000)),
    "dropout": _backward(lambda torch, x: torch.nn.functional.dropout(x, 0.1, True), ROWS),
    "sort": _backward(lambda torch, x: torch.sort(x)[0], ROWS),
    "topk 10": _backward(lambda torch, x: torch.topk(x, 10)[0], ROWS),
    "median": _backward(lambda torch, x: torch.median(x), ROWS),
    "unique": _forward(lambda torch, x: torch.unique(x), make=_positions(256, 512, below=1000)),
    "gather": _backward(lambda torch, x, i: x.gather(1, i), ROWS, make=_positions(256, 512, below=512)),
    "scatter_add": _backward(lambda torch, x, y, i: x.scatter_add(1, i, y), ROWS, ROWS,
                             make=_positions(256, 512, below=512)),
    "index_add, rows": _backward(lambda torch, x, y, i: x.index_add(0, i, y), ROWS, ROWS,
                                 make=_positions(256, below=256)),
    "index_add, columns": _backward(lambda torch, x, y, i: x.index_add(1, i, y), ROWS, ROWS,
                                    make=_positions(512, below=512)),
    "embedding": _backward(lambda torch, x, i: torch.nn.functional.embedding(i, x), ROWS,
                           make=_positions(8, 64, below=256)),
    "where": _backward(lambda torch, x, y: torch.where(x > 0, x, y), ROWS, ROWS),
    "masked_fill": _backward(lambda torch, x: x.masked_fill(x > 0, 0.0), ROWS),
    "index by a mask": _forward(lambda torch, x: x[x > 0], ROWS),
    "cumsum": _backward(lambda torch, x: x.cumsum(1), ROWS),
    "softmax": _backward(lambda torch, x: x.softmax(1), ROWS),
    "layer_norm": _backward(lambda torch, x: torch.nn.functional.layer_norm(x, (512,)), ROWS),
    "erf": _backward(lambda torch, x: torch.erf(x), ROWS),
    "smooth_l1_loss": _backward(lambda torch, x, y: torch.nn.functional.smooth_l1_loss(x, y), ROWS, ROWS),
    "bilinear": _backward(lambda torch, x, y, w: torch.nn.functional.bilinear(x, y, w), (64, 32), (64, 32),
                          (32, 32, 32)),
    "max_pool2d 3, stride 2": _backward(lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1), IMAGES),
    "avg_pool2d 2": _backward(lambda torch, x: torch.nn.functional.avg_pool2d(x, 2), IMAGES),
    "interpolate, bilinear": _backward(
        lambda torch, x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"), IMAGES),
    "grid_sample": _backward(lambda torch, x, g: torch.nn.functional.grid_sample(x, g, align_corners=False), IMAGES,
                             (8, 32, 32, 2)),
    "gelu": _backward(lambda torch, x: torch.nn.functional.gelu(x), ROWS),
    "silu": _backward(lambda torch, x: torch.nn.functional.silu(x), ROWS),
    "tanh": _backward(lambda torch, x: torch.tanh(x), ROWS),
    "log_softmax": _backward(lambda torch, x: x.log_softmax(1), ROWS),
    "add and multiply": _backward(lambda torch, x, y: (x + y) * x, ROWS, ROWS),
    "linear 512-128-512": _backward(lambda torch, x, w, b: torch.nn.functional.linear(x, w, b), (512, 128), (512, 128),
                                    (512,)),
    "bmm 8 of 64": _backward(lambda torch, x, y: torch.bmm(x, y), (8, 64, 64), (8, 64, 64)),
    "attention, causal": _backward(
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        *((4, 4, 128, 32),) * 3),
    "conv2d 3x3": _backward(lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1), IMAGES, (32, 16, 3, 3)),
    "conv2d 3x3, stride 2": _backward(lambda torch, x, w: torch.nn.functional.conv2d(x, w, stride=2, padding=1), IMAGES,
                                      (32, 16, 3, 3)),
    "conv2d, depthwise": _backward(lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1, groups=16), IMAGES,
                                   (16, 1, 3, 3)),
    "batch_norm": _backward(lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True), IMAGES),
    "LSTM 64-128, 32 steps": _layer(lambda torch: (torch.nn.LSTM(64, 128), torch.randn(32, 16, 64))),
    "group_norm": _backward(lambda torch, x: torch.nn.functional.group_norm(x, 4), IMAGES),
    "RNN 64-128, 32 steps": _layer(lambda torch: (torch.nn.RNN(64, 128), torch.randn(32, 16, 64))),
    "GRU 64-128, 32 steps": _layer(lambda torch: (torch.nn.GRU(64, 128), torch.randn(32, 16, 64))),
}


def run() -> None:
    """Print one row per kernel, the slowest compared with PyTorch first."""
    theirs.set_num_threads(1)
    ours.set_num_threads(1)
    print("\nkernels, forward and backward, processor time: ours, PyTorch, ratio")
    found = [(name, *best_of([build(ours), build(theirs)], 7, 0.02, thread_time)) for name, build in CASES.items()]
    for name, mine, other in sorted(found, key=lambda row: -row[1] / row[2]):
        print(line(name, mine, other))

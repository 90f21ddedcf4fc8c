"""Ops that C queues give the results of the Python version, which is the reference."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.base import FOUND
from mindtorch_v2._backends.npu import arrays, call, memory
from mindtorch_v2._backends.npu.native import LAUNCH

pytestmark = pytest.mark.skipif(LAUNCH is None, reason="the launcher was not built")

OPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "with a factor": lambda x, y: torch.add(x, y, alpha=0.5), "number": lambda x, y: x * 2.5,
    "whole number": lambda x, y: x - 3, "quotient": lambda x, y: x / y, "truth": lambda x, y: x > y,
    "truth by number": lambda x, y: x <= 0.5, "one": lambda x, y: x.exp(), "addcmul": lambda x, y: x.addcmul(y, y),
    "in place": lambda x, y: x.clone().mul_(y), "in place by number": lambda x, y: x.clone().add_(1.5),
    "lerp": lambda x, y: x.lerp(y, 0.25), "relu": lambda x, y: x.relu(),
}
SHAPES = [(), (1,), (3, 4), (2, 3, 4), (2, 1, 3, 4), (2, 1, 3, 1, 2)]


def kernels() -> dict[Any, Any]:
    """The kernels in C that were used so far."""
    return {key: kernel for key, kernel in FOUND.items() if isinstance(kernel, LAUNCH.Kernel)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64])
@pytest.mark.parametrize("name", OPS)
def test_values(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in SHAPES:
        x, y = torch.randn(shape).mul(4).to(dtype).npu(), torch.randn(shape).mul(4).abs().add(1).to(dtype).npu()
        if name in ("lerp", "with a factor", "in place by number") and dtype is torch.int64:
            continue  # floating numbers have no place there
        got = OPS[name](x, y)
        with monkeypatch.context() as patch:
            for key, kernel in kernels().items():
                patch.setitem(FOUND, key, kernel.python)
            for operator, made in list(vars(call.CALLS).items()):
                patch.setattr(call.CALLS, operator, getattr(made, "python", made))
            want = OPS[name](x, y)
        assert got.dtype == want.dtype
        assert got.stride() == want.stride()
        assert torch.equal(got, want) or bool((got.isnan() == want.isnan()).all())
    assert kernels()


def test_what_it_leaves_to_python() -> None:
    x = torch.arange(12.0, device="npu").view(3, 4)
    assert torch.equal((x.t() + x.t()).cpu(), x.cpu().t() * 2)  # other strides
    assert torch.equal((x + x[0]).cpu(), x.cpu() + x.cpu()[0])  # broadcast
    assert (torch.ones(0, 3, device="npu") + 1).shape == (0, 3)
    assert torch.equal((torch.ones(9, device="npu")[1::2] * 2).cpu(), torch.full((4,), 2.0))
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.ones(2, device="npu") + torch.ones(3, device="npu")
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device="npu:0") + torch.ones(2, device="npu:1")


def test_memory_is_counted_alike() -> None:
    allocator = memory.allocator(0)
    stream = torch.npu.current_stream().npu_stream
    arrays.empty((100,), arrays.FLOAT32, 0)  # so that a block of this size is at hand
    allocator.settle()
    found = []
    for take in (allocator.take, allocator.take_slowly):
        taken = take(400, stream)  # warms up: the other version has merged what was at hand
        del taken
        gc.collect()
        before = torch.npu.memory_stats()
        block = take(400, stream)
        during = torch.npu.memory_stats()
        del block
        after = torch.npu.memory_stats()
        found.append([{key: there[key] - before[key] for key in before if "peak" not in key and "inactive" not in key}
                      for there in (during, after)])
    assert found[0] == found[1]
    assert found[0][0]["allocated_bytes.all.current"] == 512
    assert found[0][1]["allocated_bytes.all.current"] == 0


def test_blocks_come_back_through_c_and_python() -> None:
    torch.npu.empty_cache()
    start = torch.npu.memory_allocated()
    kept = [torch.ones(n, device="npu") * 2 for n in (1, 10, 1000, 10, 1)]
    assert torch.npu.memory_allocated() > start
    with torch.npu.stream(torch.npu.Stream()):
        other = kept[0] + kept[4]
    other.record_stream(torch.npu.current_stream())
    del kept, other
    torch.npu.synchronize()
    gc.collect()
    assert torch.npu.memory_allocated() == start


def test_streams_of_threads() -> None:
    """Work goes to the stream that is current when it is queued."""
    side = torch.npu.Stream()
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.NPU]) as prof:
        y = x + x
        with torch.npu.stream(side):
            z = x * y
        y + z
    assert [e.device_resource_id for e in prof.events() if e["device_type"] == "NPU"].count(side.stream_id) == 1
    with torch.npu.stream(side):
        z = x * 3
    side.synchronize()
    assert z.tolist() == [3.0] * 4

"""The caching allocator: sizes, statistics, streams, and running out."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest

import mindtorch_v2 as torch
from length import LONG


def settled() -> dict[str, int]:
    gc.collect()
    torch.npu.synchronize()
    return torch.npu.memory_stats()


def test_blocks_are_rounded_and_counted() -> None:
    torch.npu.empty_cache()
    before = torch.npu.memory_allocated()
    for nbytes, block in ((4, 512), (480, 512), (512, 1024), (1 << 20, (1 << 20) + 512)):
        held = torch.empty(nbytes // 4, device="npu")
        assert torch.npu.memory_allocated() - before == block
        del held
    assert torch.npu.memory_allocated() == before


def test_statistics_agree_with_the_blocks() -> None:
    """After any allocations and releases, the counts are those of the existing segments and blocks."""
    numbers = random.Random(1)
    held: list[Any] = []
    for step in range(300):
        if held and numbers.random() < 0.45:
            held.pop(numbers.randrange(len(held)))
        else:
            held.append(torch.empty(numbers.choice((1, 100, 5000, 300_000, 3_000_000)), device="npu"))
        if step % 60 == 59:
            check()
    del held
    check()
    torch.npu.empty_cache()
    check()


def check() -> None:
    counts, segments = settled(), torch.npu.memory_snapshot()
    blocks = [block for segment in segments if segment["device"] == 0 for block in segment["blocks"]]
    mine = [segment for segment in segments if segment["device"] == 0]
    used = [block for block in blocks if block["state"] != "inactive"]
    parts = [block for segment in mine for block in segment["blocks"]
             if block["state"] == "inactive" and block["size"] != segment["total_size"]]
    assert counts["allocation.all.current"] == counts["active.all.current"] == len(used)
    assert counts["allocated_bytes.all.current"] == sum(block["size"] for block in used)
    assert counts["reserved_bytes.all.current"] == sum(segment["total_size"] for segment in mine)
    assert counts["segment.all.current"] == len(mine)
    assert counts["inactive_split.all.current"] == len(parts)
    assert counts["inactive_split_bytes.all.current"] == sum(block["size"] for block in parts)
    assert counts["requested_bytes.all.current"] == sum(block["requested_size"] for block in used)
    for segment in mine:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    for group in ("allocation", "allocated_bytes", "active_bytes", "inactive_split", "requested_bytes", "segment"):
        for metric in ("current", "allocated", "freed"):
            assert counts[f"{group}.all.{metric}"] == sum(counts[f"{group}.{pool}.{metric}"]
                                                          for pool in ("small_pool", "large_pool"))
        assert counts[f"{group}.all.current"] == counts[f"{group}.all.allocated"] - counts[f"{group}.all.freed"]


def test_peaks_and_resets() -> None:
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()
    base = torch.npu.memory_allocated()
    big = torch.empty(1 << 20, device="npu")
    size = torch.npu.memory_allocated() - base
    del big
    assert torch.npu.max_memory_allocated() == base + size
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.max_memory_allocated() == torch.npu.memory_allocated()
    assert torch.npu.memory_reserved() > 0
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() <= torch.npu.max_memory_reserved()
    assert "Allocated memory" in torch.npu.memory_summary()


def test_memory_that_another_stream_uses_waits_for_it() -> None:
    stream = torch.npu.Stream()
    x = torch.ones(1024, 1024, device="npu")
    address = x.data_ptr()
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        for _ in range(5):
            y = x @ x
    x.record_stream(stream)
    del x
    counts = torch.npu.memory_stats()
    fresh = torch.empty(1024, 1024, device="npu")
    if counts["active_bytes.all.current"] > counts["allocated_bytes.all.current"]:
        assert fresh.data_ptr() != address
    stream.synchronize()
    assert y[0, 0].item() == 1024.0


def test_running_out_of_memory() -> None:
    torch.npu.empty_cache()
    torch.npu.set_per_process_memory_fraction(0.01)
    try:
        limit = int(torch.npu.get_device_properties().total_memory * 0.01)
        cached = torch.empty(limit // 8, device="npu")
        del cached
        retries = torch.npu.memory_stats()["num_alloc_retries"]
        assert torch.empty(limit // 6, device="npu").numel()  # fits after the cache was given back
        assert torch.npu.memory_stats()["num_alloc_retries"] == retries + 1
        with pytest.raises(torch.OutOfMemoryError, match=r"NPU out of memory. Tried to allocate .* 1.00% of the"):
            torch.empty(limit, device="npu")
        assert torch.npu.memory_stats()["num_ooms"] >= 1
    finally:
        torch.npu.set_per_process_memory_fraction(1.0)
    assert torch.ones(4, device="npu").sum().item() == 4


def test_many_steps_leave_nothing_behind(simulator: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).npu()
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(8, 16, device="npu"), torch.randint(0, 4, (8,), device="npu")

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for _ in range(20):
        step()
    torch.npu.synchronize()
    gc.collect()
    memory, reserved = torch.npu.memory_allocated(), torch.npu.memory_reserved()
    handles = [simulator.live_handles(kind) for kind in range(1, 12)]
    for _ in range(1000 if LONG else 30):
        step()
    torch.npu.synchronize()
    gc.collect()
    assert torch.npu.memory_allocated() == memory
    assert torch.npu.memory_reserved() == reserved
    assert [simulator.live_handles(kind) for kind in range(1, 12)] == handles
    assert simulator.check_guards(0) == 0

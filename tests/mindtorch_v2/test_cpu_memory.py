"""Statistics of tensor memory on the CPU."""

from __future__ import annotations

import gc

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


def test_without_a_recording_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindtorch_v2.cpu.memory.MEMORY_LOGS", [])
    for ask in (torch.cpu.memory_allocated, torch.cpu.max_memory_allocated, torch.cpu.memory_stats,
                torch.cpu.reset_peak_memory_stats, torch.cpu.reset_accumulated_memory_stats):
        with pytest.raises(RuntimeError, match="profile_memory=True"):
            ask()


def test_a_training_step() -> None:
    model = torch.nn.Linear(64, 32)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(16, 64)
    with profile(profile_memory=True) as prof:
        torch.cpu.reset_accumulated_memory_stats()
        torch.cpu.reset_peak_memory_stats()
        before = torch.cpu.memory_allocated()
        model(x).sum().backward()
        optimizer.step()
    after = torch.cpu.memory_stats()
    parameters = sum(p.numel() for p in model.parameters())
    steps = 2 * 4  # of two parameters
    assert after["allocated_bytes.all.current"] - before == 3 * 4 * parameters + steps, "gradients and Adam's state"
    assert after["allocated_bytes.all.current"] < after["allocated_bytes.all.peak"]
    assert (after["allocated_bytes.all.allocated"] - after["allocated_bytes.all.freed"]
            == after["allocated_bytes.all.current"] - before)
    changes = [e.cpu_memory_usage for e in prof.events() if e.name == "[memory]"]
    known = [change for change in changes if change > 0]
    assert len(known) <= after["allocation.all.allocated"]
    assert torch.cpu.max_memory_allocated() == after["allocated_bytes.all.peak"]


def test_what_was_seen_is_known_until_it_is_freed() -> None:
    with profile(profile_memory=True):
        kept = torch.ones(1000)
    there = torch.cpu.memory_allocated()
    assert torch.cpu.memory_stats()["allocated_bytes.all.current"] == there
    del kept
    gc.collect()
    assert torch.cpu.memory_allocated() <= there - 4000
    torch.cpu.reset_peak_memory_stats()
    assert torch.cpu.max_memory_allocated() == torch.cpu.memory_allocated()

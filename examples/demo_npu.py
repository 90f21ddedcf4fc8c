"""Trains a small classifier on an NPU under the profiler: prints the device's columns, writes a trace and tables.

On a machine without one, `MINDTORCH_NPU=sim python examples/demo_npu.py` runs it on the simulator.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule
from mtprof.views.device_tables import op_statistic, write_all

OUT = Path("demo-out") / "npu"


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two interleaved spirals, and which of the two each belongs to."""
    radius = torch.rand(count).sqrt() * 2 * math.pi
    label = torch.randint(0, 2, (count,))
    angle = radius + label.float() * math.pi
    points = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], 1)
    return points + 0.1 * torch.randn(count, 2), label


def main() -> None:
    if not torch.npu.is_available():
        sys.exit(f"no NPU: {torch.npu.unavailable_reason()}\n(MINDTORCH_NPU=sim chooses the simulator)")
    torch.manual_seed(0)
    points, labels = (tensor.pin_memory() for tensor in spirals(512))
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)).npu()
    optimizer = optim.AdamW(model.parameters(), lr=0.01, fused=True)
    OUT.mkdir(parents=True, exist_ok=True)

    print(f"-- training {sum(p.numel() for p in model.parameters())} parameters on {torch.npu.get_device_name()}")
    plan = schedule(wait=50, warmup=5, active=5, repeat=1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU], schedule=plan, profile_memory=True) as prof:
        for step in range(100):
            with record_function("forward"):
                inputs, wanted = points.npu(non_blocking=True), labels.npu(non_blocking=True)
                output = model(inputs)
                loss = nn.functional.cross_entropy(output, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
            if step % 25 == 0 or step == 99:
                accuracy = (output.argmax(1) == wanted).float().mean().item()
                print(f"step {step:3d}  loss {loss.item():.4f}  accuracy {accuracy:.3f}")

    print(prof.key_averages().table(sort_by="npu_time_total", row_limit=15))
    trace = prof.profiler.trace
    print("-- operators by time on the device")
    for row in op_statistic(trace)[:5]:
        print(f"   {row['OP Type']:24} {row['Count']:5} calls  {row['Total Time(us)']:10.2f} us  "
              f"{row['Ratio(%)']:5.1f} %")
    print(f"-- memory: {torch.npu.max_memory_allocated() / 2**20:.2f} MiB at most, "
          f"{torch.npu.memory_reserved() / 2**20:.0f} MiB reserved")
    write_all(trace, OUT)
    prof.export_chrome_trace(str(OUT / "trace.json"))
    print(f"-- wrote {OUT}/trace.json for https://ui.perfetto.dev, and tables beside it")


if __name__ == "__main__":
    main()

"""Trains a small classifier under the profiler: prints a table and writes a trace for Perfetto or chrome://tracing."""

from __future__ import annotations

import math
from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim
from mindtorch_v2.profiler import profile, record_function, schedule

OUT = Path("demo-out")


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two interleaved spirals, and which of the two each belongs to."""
    radius = torch.rand(count).sqrt() * 2 * math.pi
    label = torch.randint(0, 2, (count,))
    angle = radius + label.float() * math.pi
    points = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], 1)
    return points + 0.1 * torch.randn(count, 2), label


def main() -> None:
    torch.manual_seed(0)
    points, labels = spirals(512)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    loss_function = nn.CrossEntropyLoss()
    OUT.mkdir(exist_ok=True)
    trace = OUT / "trace.json"

    print(f"-- training {sum(p.numel() for p in model.parameters())} parameters on {len(points)} points")
    plan = schedule(wait=100, warmup=5, active=20, repeat=1)
    with profile(schedule=plan, record_shapes=True, with_flops=True,
                 on_trace_ready=lambda p: p.export_chrome_trace(trace)) as prof:
        for step in range(200):
            with record_function("forward"):
                output = model(points)
                loss = loss_function(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
            if step % 50 == 0 or step == 199:
                accuracy = (output.argmax(1) == labels).float().mean().item()
                print(f"step {step:3d}  loss {loss.item():.4f}  accuracy {accuracy:.3f}")

    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))
    print(f"-- wrote {trace} ({trace.stat().st_size / 1024:.0f} KiB): open it in https://ui.perfetto.dev")


if __name__ == "__main__":
    main()

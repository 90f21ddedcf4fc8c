"""A few data-parallel steps under the profiler; each rank saves its recording."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DDP(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
slow = int(sys.argv[1]) if len(sys.argv) > 1 else -1
with torch.profiler.profile(record_shapes=True) as prof:
    for _ in range(4):
        for _ in range(30 if rank == slow else 1):
            torch.ones(300, 300) @ torch.ones(300, 300)
        loss = model(torch.ones(16, 64) * rank).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach()
        dist.all_reduce(total)
        prof.step()
folder = os.environ["RESULTS"]
prof.export_chrome_trace(os.path.join(folder, f"rank{rank}.json"))
prof.save(os.path.join(folder, f"rank{rank}.mtprof"))
dist.barrier()

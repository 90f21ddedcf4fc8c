"""Ranks with unequal numbers of batches: the join context lets the early ones take part."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = [torch.full((2, 4), float(1 + number)) for number in range(3 + rank)]
with model.join():
    for number, x in enumerate(inputs):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        print(f"input {number} loss {loss.item():.5f}")
dist.barrier()
print("weight", *(f"{value:.5f}" for value in model.module[0].weight.detach().flatten().tolist()))
dist.destroy_process_group()

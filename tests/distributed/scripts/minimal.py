"""The smallest data-parallel program: full-batch descent, each rank with its share of the rows."""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group(backend="gloo")
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    x, y = torch.randn(16, 10), torch.randn(16, 5)
    model = DDP(nn.Linear(10, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(6):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rank::world_size]), y[rank::world_size])
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach_())
        print(f"step {step} loss {loss.item() / world_size:.6f}")
    print("weight", *(f"{value:.6f}" for value in model.module.weight.detach().flatten().tolist()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Data-parallel training as people write it; losses, gradients and weights of each rank, for a comparison with
PyTorch."""

import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
seen: dict = {}


def numbers(model):
    return [value.double().flatten().tolist() for value in model.state_dict().values()]


def batches(seed=0, count=32):
    generator = torch.Generator().manual_seed(seed)
    data = TensorDataset(torch.randn(count, 6, generator=generator), torch.randn(count, 2, generator=generator))
    sampler = DistributedSampler(data)
    sampler.set_epoch(1)
    return DataLoader(data, batch_size=4, sampler=sampler)


def mlp():
    torch.manual_seed(rank)  # replicas start alike all the same
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def train(model, steps=None, accumulate=1, clip=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for number, (x, y) in enumerate(batches()):
        last = number % accumulate == accumulate - 1
        if not last:
            with model.no_sync():
                nn.functional.mse_loss(model(x), y).backward()
            continue
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if clip:
            losses.append(nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    return losses


for name, options in {"plain": {}, "small buckets": {"bucket_cap_mb": 0.0001}, "views": {"gradient_as_bucket_view":
True}, "static": {"static_graph": True}, "unused": {"find_unused_parameters": True}}.items():
    model = DDP(mlp(), **options)
    seen[name] = [train(model), numbers(model)]
model = DDP(mlp())
seen["accumulated"] = [train(model, accumulate=2, clip=0.5), numbers(model)]
for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
    model = DDP(mlp())
    model.register_comm_hook(None, hook)
    seen[hook.__name__] = [train(model), numbers(model)]


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.both, self.first, self.second, self.never = (nn.Linear(6, 2) for _ in range(4))

    def forward(self, x, first):
        return self.both(x) + (self.first(x) if first else self.second(x) if first is False else 0)


torch.manual_seed(0)
model = DDP(Branches(), find_unused_parameters=True)
for step in range(3):
    model(torch.ones(2, 6) * (rank + 1), [rank == 0, True, None][step]).sum().backward()
    seen[f"branches {step}"] = [None if one.grad is None else one.grad.flatten().tolist() for one in model.parameters()]
model = DDP(Branches())
model(torch.ones(2, 6), True).sum().backward()
try:
    model(torch.ones(2, 6), True)
except RuntimeError as error:
    seen["not finished"] = str(error)[:80]



class Outputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.left = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x):
        return {"used": self.used(x), "left": [self.left(x)]}


torch.manual_seed(0)
model = DDP(Outputs(), find_unused_parameters=True)
for _ in range(2):
    model(torch.ones(2, 6) * (rank + 1))["used"].sum().backward()
seen["outputs outside the loss"] = [None if one.grad is None else one.grad.flatten().tolist()
                                    for one in model.parameters()]

torch.manual_seed(0)
model = DDP(nn.Linear(6, 2))
loss = model(torch.ones(2, 6) * (rank + 1)).sum()
with model.no_sync():
    loss.backward()  # averaged all the same: the forward was outside
seen["backward in no_sync"] = model.module.weight.grad.flatten().tolist()


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(6, 4, sparse=True), nn.EmbeddingBag(6, 4, mode="sum", sparse=True)
        self.out = nn.Linear(4, 2)

    def forward(self, rows):
        return self.out(self.first(rows) + self.second(rows.view(-1, 1)))


for name, options in {"sparse": {}, "sparse unused": {"find_unused_parameters": True}}.items():
    torch.manual_seed(rank)
    model = DDP(Sparse(), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.tensor([rank, step, 2])).square().sum().backward()
        optimizer.step()
    seen[name] = [[one.grad.is_sparse for one in model.parameters()], numbers(model)]

torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(6, 5, bias=False), nn.BatchNorm1d(5), nn.Linear(5, 2)))
seen["batch norm"] = [train(model), numbers(model)]
model.eval()
seen["eval"] = model(torch.ones(2, 6)).flatten().tolist()

model = DDP(mlp())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with model.join():
    for step in range(2 + rank):
        optimizer.zero_grad()
        model(torch.ones(3, 6) * (step + 1)).sum().backward()
        optimizer.step()
seen["join"] = numbers(model)
model = DDP(mlp())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with model.join(divide_by_initial_world_size=False):
    for step in range(2 + rank):
        optimizer.zero_grad()
        model(torch.ones(3, 6) * (step + 1)).sum().backward()
        optimizer.step()
seen["join of those that work"] = numbers(model)

model = DDP(mlp())
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.05)
for x, y in batches():
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
seen["zero"] = numbers(model)
optimizer.consolidate_state_dict(to=0)
if rank == 0:
    state = optimizer.state_dict()
    seen["zero state"] = [[one["exp_avg"].flatten().tolist() for _, one in sorted(state["state"].items())],
                          state["param_groups"][0]["params"], state["param_groups"][0]["lr"]]
else:
    seen["zero state"] = None

seen["state"] = list(model.state_dict())
dist.barrier()
dist.destroy_process_group()
with open(os.path.join(os.environ["RESULTS"], f"{rank}.json"), "w") as file:
    json.dump(seen, file)

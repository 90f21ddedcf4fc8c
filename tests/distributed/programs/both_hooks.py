"""Collectives that gradients flow through, communication hooks and model averaging: the same on both runtimes."""

import json
import os
import warnings

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as plain
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
seen = {"rank": rank}


def weighed(tensor):
    return (tensor * (torch.arange(float(tensor.numel())).reshape(tensor.shape) + 1 + rank) ** 1.5).sum()


def gradient(name, function, *shape):
    x = ((torch.arange(float(torch.Size(shape).numel())).reshape(shape) + 10 * rank) / 7).requires_grad_()
    y = function(x)
    outputs = list(y) if isinstance(y, tuple) else [y]
    sum(weighed(one) for one in outputs).backward()
    # What a rank has that is not the target of a sum is not said.
    is_said = name != "reduce" or rank == 1
    seen[name] = [value for one in outputs for value in one.flatten().tolist()] if is_said else []
    seen[f"{name} gradient"] = x.grad.flatten().tolist()


gradient("all_reduce", F.all_reduce, 3)
gradient("all_reduce max", lambda x: F.all_reduce(x, op=dist.ReduceOp.MAX), 3)
gradient("broadcast", lambda x: F.broadcast(x, 1), 3)
gradient("all_gather", F.all_gather, 3)
gradient("gather", lambda x: F.gather(x, 1), 3)
gradient("reduce", lambda x: F.reduce(x, 1), 3)
gradient("scatter", lambda x: F.scatter(list(x.unbind(0)), 1), size, 3)
gradient("reduce_scatter", lambda x: F.reduce_scatter(torch.empty(3), list(x.unbind(0))), size, 3)
gradient("all_to_all", lambda x: F.all_to_all([torch.empty(3) for _ in range(size)], list(x.unbind(0))), size, 3)
gradient("all_to_all_single", lambda x: F.all_to_all_single(torch.empty(size, 2), x), size, 2)
rows = [[1 + (source + target) % 2 for target in range(size)] for source in range(size)]
received = [rows[source][rank] for source in range(size)]
gradient("all_to_all_single of rows",
         lambda x: F.all_to_all_single(torch.empty(sum(received), 2), x, received, rows[rank]), sum(rows[rank]), 2)


def train(name, prepare):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 10)), bucket_cap_mb=100)
    after_step = prepare(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    own = torch.Generator().manual_seed(rank + 5)
    losses = []
    for _ in range(6):
        loss = ((model(torch.randn(16, 20, generator=own)) - torch.randn(16, 10, generator=own)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if after_step is not None:
            after_step(model.parameters())
    seen[name] = losses + [parameter.sum().item() for parameter in model.parameters()]


def powerful(hook=power.powerSGD_hook, **options):
    state = power.PowerSGDState(None, start_powerSGD_iter=2, **options)
    return lambda model: model.register_comm_hook(state, hook)


def locally(model):
    part, _ = dist.new_subgroups(2)
    model.register_comm_hook(PostLocalSGDState(None, part, 2), post_localSGD_hook)
    return PeriodicModelAverager(period=2, warmup_steps=2).average_parameters


for kind in ("ALLREDUCE", "FP16_COMPRESS", "NOOP", "POWER_SGD"):
    train(kind, lambda model, kind=kind: register_ddp_comm_hook(DDPCommHookType[kind], model))
train("PowerSGD", powerful())
train("PowerSGD of two columns", powerful(matrix_approximation_rank=2))
train("PowerSGD without feedback", powerful(use_error_feedback=False))
train("PowerSGD that starts anew", powerful(warm_start=False))
train("PowerSGD with an epsilon", powerful(orthogonalization_epsilon=1e-6))
train("PowerSGD of 16 bits", powerful(plain.fp16_compress_wrapper(power.powerSGD_hook)))
train("local", locally)
with open(os.path.join(os.environ["RESULTS"], f"{rank}.json"), "w") as file:
    json.dump(seen, file)
dist.destroy_process_group()

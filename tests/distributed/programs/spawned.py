"""`mp.spawn` as people write it; the first argument says what goes wrong in rank 1."""

import os
import signal
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size, trouble):
    os.environ["MASTER_ADDR"] = "localhost"
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29555", rank=rank, world_size=world_size)
    if rank == 1 and trouble == "raises":
        raise ValueError("no data for this rank")
    if rank == 1 and trouble == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    model = DDP(nn.Linear(4, 2))
    model(torch.ones(2, 4) * rank).sum().backward()
    print(rank, model.module.weight.grad.sum().item(), flush=True)
    dist.destroy_process_group()


def put(rank, queue):
    queue.put(rank)


if __name__ == "__main__":
    trouble = sys.argv[1]
    if trouble == "queue":
        queue = mp.get_context("spawn").SimpleQueue()
        mp.spawn(put, args=(queue,), nprocs=2)
        print(sorted(queue.get() for _ in range(2)))
        sys.exit()
    try:
        context = mp.spawn(train, args=(2, trouble), nprocs=2, join=trouble != "apart")
        while trouble == "apart" and not context.join(0.1):
            pass
    except Exception as error:
        print(type(error).__name__, error.error_index, getattr(error, "signal_name", ""), str(error).splitlines()[-1])

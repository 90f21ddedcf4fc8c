"""Every collective, on every rank; prints what each rank has afterwards, for a comparison with PyTorch."""

import json
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
seen: dict = {"rank": rank, "size": size, "initialized": dist.is_initialized(), "backend": dist.get_backend()}


def note(name, *tensors):
    seen[name] = [[str(one.dtype), list(one.shape), one.double().flatten().tolist()] for one in tensors]


def own(dtype=torch.float32, shape=(2, 3)):
    count = 1
    for extent in shape:
        count *= extent
    return (torch.arange(1, count + 1).reshape(shape) * (rank + 1)).to(dtype)


OPS = dist.ReduceOp
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32,
              torch.int64):
    for op in ("SUM", "PRODUCT", "MIN", "MAX"):
        x = own(dtype)
        dist.all_reduce(x, op=getattr(OPS, op))
        note(f"all_reduce {dtype} {op}", x)
for op in ("BAND", "BOR", "BXOR"):
    x = own(torch.int64)
    dist.all_reduce(x, op=getattr(OPS, op))
    note(f"all_reduce int64 {op}", x)
x = torch.view_as_real(own(torch.complex64))
dist.all_reduce(x)
note("complex", x)
x = own(shape=())
dist.all_reduce(x)
note("all_reduce 0-d", x)

x = torch.sparse_coo_tensor([[rank, 2, 2]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (size + 3, 2))
dist.all_reduce(x)
note("sparse", x.to_dense(), x.indices(), x.values())
seen["refused"] = []
for call in (lambda: dist.all_reduce(own(torch.int64), OPS.AVG), lambda: dist.all_reduce(own(torch.bool), OPS.AVG),
             lambda: dist.all_gather([own()] * (size + 1), own()),
             lambda: dist.all_gather_into_tensor(torch.zeros(2 * size + 1, 3), own()),
             lambda: dist.reduce(own(torch.complex64), 0, OPS.MAX),
             lambda: dist.all_reduce(own(torch.complex64), OPS.MAX)):
    try:
        call()
    except Exception as error:
        seen["refused"].append(type(error).__name__)

for src in range(size):
    x = own()
    dist.broadcast(x, src)
    note(f"broadcast {src}", x)
    x = own()
    dist.reduce(x, src)
    if rank == src:
        note(f"reduce {src}", x)
    parts = [torch.zeros(2, 3) for _ in range(size)] if rank == src else None
    dist.gather(own(), parts, dst=src)
    note(f"gather {src}", *(parts or []))
    x = torch.zeros(2, 3)
    dist.scatter(x, [own() + 100 * place for place in range(size)] if rank == src else None, src=src)
    note(f"scatter {src}", x)

parts = [torch.zeros(2, 3, dtype=torch.bfloat16) for _ in range(size)]
dist.all_gather(parts, own(torch.bfloat16))
note("all_gather", *parts)
x = torch.zeros(2 * size, 3)
dist.all_gather_into_tensor(x, own())
note("all_gather_into_tensor", x)
x = torch.zeros(2, 3)
dist.reduce_scatter(x, [own() + place for place in range(size)])
note("reduce_scatter", x)
x = torch.zeros(2, 3)
dist.reduce_scatter_tensor(x, own(shape=(2 * size, 3)))
note("reduce_scatter_tensor", x)
x = torch.zeros(2 * size, 3)
dist.all_to_all_single(x, own(shape=(2 * size, 3)))
note("all_to_all_single", x)
rows = [place + 1 for place in range(size)]
x = torch.zeros(size * (rank + 1), 2)
dist.all_to_all_single(x, own(shape=(sum(rows), 2)), [rank + 1] * size, rows)
note("all_to_all_single splits", x)

work = dist.all_reduce(y := own(), async_op=True)
dist.all_reduce(z := own())
assert work.wait() in (True, None)
note("async", y, z)
many = [own() + place for place in range(20)]
works = [dist.all_reduce(one, async_op=True) for one in many]
for work in reversed(works):
    work.wait()
    assert work.is_completed()
note("many async", *many)
future = dist.all_reduce(y := own(), async_op=True).get_future().then(lambda done: done.value()[0] * 2)
note("future", future.wait())

after, before = (rank + 1) % size, (rank - 1) % size
x = torch.zeros(2, 3)
if rank == 0:
    dist.send(own(), 1)
elif rank == 1:
    seen["recv"] = dist.recv(x, 0)
note("sent", x)
x = torch.zeros(2, 3)
works = dist.batch_isend_irecv([dist.P2POp(dist.isend, own(), after), dist.P2POp(dist.irecv, x, before)])
for work in works:
    work.wait()
note("ring", x)

things = [None] * size
dist.all_gather_object(things, {"rank": rank, "text": "x" * rank})
seen["all_gather_object"] = things
things = [None] * size if rank == 1 else None
dist.gather_object((rank, "y"), things, dst=1)
seen["gather_object"] = things
things = [rank, "a", {"b": rank}]
dist.broadcast_object_list(things, src=1)
seen["broadcast_object_list"] = things
things = [None]
dist.scatter_object_list(things, [f"for {place}" for place in range(size)] if rank == 0 else None, src=0)
seen["scatter_object_list"] = things
if rank == 0:
    dist.send_object_list(["one", 2], dst=1)
if rank == 1:
    things = [None, None]
    dist.recv_object_list(things, src=0)
    seen["recv_object_list"] = things

pair = dist.new_group([0, 1])
alone = dist.new_group([1])
seen["ranks"] = [dist.get_rank(pair), dist.get_world_size(pair), dist.get_rank(alone)]
x = own()
dist.all_reduce(x, group=pair)
note("group", x)
if rank == 1:
    seen["group ranks"] = [dist.get_process_group_ranks(pair), dist.get_group_rank(alone, 1),
                           dist.get_global_rank(alone, 0)]
dist.barrier()
dist.monitored_barrier()
dist.destroy_process_group()
seen["destroyed"] = dist.is_initialized()
with open(os.path.join(os.environ["RESULTS"], f"{rank}.json"), "w") as file:
    json.dump(seen, file)

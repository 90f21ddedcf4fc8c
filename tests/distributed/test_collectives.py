"""Collectives, messages and groups in real processes, beside PyTorch's gloo."""

from __future__ import annotations

import subprocess
import sys

import pytest
from ranks_helper import environment, results_of, torchrun

pytest.importorskip("mpi4py")


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_are_pytorchs(both, ranks):
    ours, theirs = both("both_collectives", ranks)
    for mine, other in zip(results_of(ours, ranks), results_of(theirs, ranks)):
        assert mine.keys() == other.keys()
        for name, value in other.items():
            assert mine[name] == value, (name, mine["rank"])


PROGRAM = """
import json, os, time
from datetime import timedelta
import torch, torch.distributed as dist
dist.init_process_group(os.environ.get("BACKEND", "mpi"), timeout=timedelta(seconds=float(os.environ.get("LIMIT", 60))))
rank, size = dist.get_rank(), dist.get_world_size()
seen = {}
def failing(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""
END = """
with open(os.path.join(os.environ["RESULTS"], f"{rank}.json"), "w") as file:
    json.dump(seen, file)
"""


@pytest.fixture
def run(tmp_path):
    """Run lines in two processes; what each put into `seen`."""

    def run_lines(lines: str, ranks: int = 2, code: int = 0, **variables: str) -> list[dict]:
        script = tmp_path / "program.py"
        script.write_text(PROGRAM + lines + END)
        ended = torchrun(ranks, str(script), results=tmp_path, **variables)
        assert (ended.returncode == 0) == (code == 0), ended.stderr
        return results_of(tmp_path, ranks)

    return run_lines


def test_average_bool_strides_and_factor(run):
    for rank, seen in enumerate(run("""
x = torch.full((3,), float(rank)); dist.all_reduce(x, dist.ReduceOp.AVG); seen["avg"] = x.tolist()
x = torch.tensor([rank == 0, False, True]); dist.all_reduce(x); seen["bool"] = x.tolist()
x = torch.zeros(3, 2).t() + rank; dist.all_reduce(x); seen["strides"] = x.tolist()
x = torch.arange(6.).reshape(2, 3); part = x[:, 1]; dist.all_reduce(part); seen["part"] = x.tolist()
x = torch.tensor([1 + 2j]) * (rank + 1); dist.all_reduce(x); seen["complex"] = [x.real.item(), x.imag.item()]
x = torch.ones(0); dist.all_reduce(x); seen["empty"] = list(x.shape)
ours = [torch.zeros(2), torch.zeros(3)] if rank == 0 else [torch.zeros(1), torch.zeros(4)]
dist.all_to_all(ours, [torch.full((n,), 10. * rank + n) for n in ((2, 1) if rank == 0 else (3, 4))])
seen["all_to_all"] = [one.tolist() for one in ours]
a, b = torch.ones(2) * rank, torch.ones(3) * (rank + 1)
dist.all_reduce_coalesced([a, b]); seen["coalesced"] = [a.tolist(), b.tolist()]
""")):
        assert seen["avg"] == [0.5] * 3
        assert seen["bool"] == [True, False, True]
        assert seen["strides"] == [[1.0] * 3] * 2
        assert seen["part"] == [[0, 2, 2], [3, 8, 5]]
        assert seen["complex"] == [3, 6]
        assert seen["empty"] == [0]
        assert seen["all_to_all"] == ([[2, 2], [13, 13, 13]] if rank == 0 else [[1], [14] * 4])
        assert seen["coalesced"] == [[1, 1], [3, 3, 3]]


def test_bad_arguments_are_named(run):
    seen = run("""
x = torch.ones(2)
seen["type"] = failing(dist.all_reduce, [x])
seen["list"] = failing(dist.all_gather, [x], x)
seen["size"] = failing(dist.all_gather_into_tensor, torch.ones(3), x)
seen["self"] = failing(dist.send, x, rank)
seen["rank"] = failing(dist.broadcast, x, 7)
seen["op"] = failing(dist.all_reduce, x, dist.ReduceOp.BAND)
seen["twice"] = failing(dist.init_process_group, "mpi")
seen["group"] = failing(dist.new_group, [0, 5])
dist.all_reduce(x)
""")[0]
    assert "expects `tensor` to be of type torch.Tensor, but got list" in seen["type"]
    assert "one tensor for each of the 2 ranks, but has 1" in seen["list"]
    assert "3 elements are not 2 times 2" in seen["size"]
    assert "Invalid destination rank" in seen["self"]
    assert "Global rank 7 is not part of group" in seen["rank"]
    assert "ReduceOp.BAND with float32" in seen["op"]
    assert "twice" in seen["twice"]
    assert "5 is not below 2" in seen["group"]


def test_ranks_that_disagree_are_named(run):
    for seen in run("""
seen["dtype"] = failing(dist.all_reduce, torch.ones(2, dtype=torch.float64 if rank else torch.float32))
seen["size"] = failing(dist.all_reduce, torch.ones(2 + rank))
seen["order"] = failing(dist.broadcast, torch.ones(2), 0) if rank else failing(dist.all_reduce, torch.ones(2))
seen["root"] = failing(dist.broadcast, torch.ones(2), rank)
works = [dist.all_reduce(torch.ones(2 + rank * (n == 1)), async_op=True) for n in range(3)]
seen["async"] = [failing(work.wait) for work in works]
x = torch.ones(2); dist.all_reduce(x); seen["goes on"] = x.tolist()
"""):
        assert "rank 0: all_reduce(torch.float32, 2 elements, SUM); rank 1: all_reduce(torch.float64" in seen["dtype"]
        assert "2 elements" in seen["size"]
        assert "3 elements" in seen["size"]
        assert "rank 0: all_reduce" in seen["order"]
        assert "rank 1: broadcast" in seen["order"]
        assert "src=0" in seen["root"]
        assert "src=1" in seen["root"]
        assert [one is None for one in seen["async"]] == [True, False, True]
        assert seen["goes on"] == [2, 2]


def test_a_message_of_another_size_is_named(run):
    seen = run("""
if rank == 0: dist.send(torch.ones(3), 1)
else: seen["error"] = failing(dist.recv, torch.ones(2), 0)
""")
    assert "rank 0 sent 12 bytes" in seen[1]["error"]


def test_a_message_of_another_dtype_is_named(run):
    seen = run("""
if rank == 0:
    for value in (torch.ones(3), torch.ones(3, dtype=torch.bfloat16), torch.ones(4)): dist.send(value, 1)
else:
    seen["whole"] = failing(dist.recv, torch.ones(3, dtype=torch.int32), 0)
    seen["half"] = failing(dist.recv, torch.ones(3, dtype=torch.float16))
    x = torch.zeros(4); dist.recv(x, 0); seen["after"] = x.tolist()
""")[1]
    assert "rank 0 sent 12 bytes of torch.float32 (tag 0) to rank 1" in seen["whole"]
    assert "12 bytes of torch.int32" in seen["whole"]
    assert "6 bytes of torch.bfloat16" in seen["half"]
    assert seen["after"] == [1.0] * 4


def test_receives_get_messages_in_the_order_of_the_calls(run):
    """In whatever order they are waited for, and also if one takes messages from any rank."""
    seen = run("""
if rank == 0:
    for number in range(6): dist.send(torch.full((2,), float(number)), 1, tag=number // 4)
    dist.send(torch.full((2,), 9.0), 1)
else:
    got = [torch.zeros(2) for _ in range(7)]
    works = [dist.irecv(x, None if n == 1 else 0, tag=n // 4) for n, x in enumerate(got[:6])]
    works.append(dist.irecv(got[6], 0))
    for work in reversed(works): work.wait()
    seen["got"] = [x[0].item() for x in got]
    seen["sources"] = [work.source_rank() for work in works]
""")[1]
    assert seen["got"] == [0, 1, 2, 3, 4, 5, 9]
    assert seen["sources"] == [0] * 7


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "os._exit(3)", "sys.exit(0)"])
def test_a_group_that_is_made_again_without_a_rank_is_an_error(tmp_path, how):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + f"""
import sys
for _ in range(2):
    dist.destroy_process_group(); dist.init_process_group("gloo"); dist.all_reduce(torch.ones(3))
dist.destroy_process_group()
if rank == 1:
    {how}
seen["error"] = failing(dist.init_process_group, "gloo")
{END}
""")
    ended = torchrun(2, str(script), results=tmp_path)
    assert "init_process_group: rank 1 (process" in results_of(tmp_path, 1)[0]["error"], ended.stderr


def test_a_rank_that_does_not_come_is_named_after_the_timeout(run):
    seen = run("""
if rank == 0: seen["error"] = failing(dist.all_reduce, torch.ones(3))
else: time.sleep(4)
""", LIMIT="1")
    assert "timed out after waiting 1000ms" in seen[0]["error"]
    assert "ranks that have not come this far: 1" in seen[0]["error"]


def test_monitored_barrier_names_who_is_missing(run):
    seen = run("""
from datetime import timedelta
if rank == 2: time.sleep(3)
else: seen["error"] = failing(dist.monitored_barrier, timeout=timedelta(seconds=1))
""", ranks=3)
    assert "Rank 2 failed to pass monitoredBarrier in 1000 ms" in seen[0]["error"]
    assert "check rank 0 logs" in seen[1]["error"]


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "os._exit(3)", "raise KeyError('mine')", "sys.exit(0)"])
def test_a_rank_that_dies_inside_a_collective_is_named(tmp_path, how):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + f"""
import sys
dist.all_reduce(torch.ones(3))
if rank == 1:
    {how}
try:
    dist.all_reduce(torch.ones(1000))
except RuntimeError as error:
    seen["error"] = str(error)
{END}
sys.exit(5)
""")
    ended = torchrun(2, str(script), results=tmp_path)
    assert ended.returncode != 0
    assert "all_reduce: rank 1" in results_of(tmp_path, 1)[0]["error"]


def test_backends(run):
    assert run("""
seen["backend"] = dist.get_backend()
dist.destroy_process_group()
for name in ("nccl", "hccl", "smoke"): seen[name] = failing(dist.init_process_group, name)
dist.init_process_group("gloo"); x = torch.ones(1); dist.all_reduce(x); seen["again"] = x.item()
""")[0]["again"] == 2


def test_one_process_without_a_launcher(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + """
x = torch.ones(2); dist.all_reduce(x); seen["x"] = x.tolist(); seen["size"] = size
dist.destroy_process_group()
seen["more"] = failing(dist.init_process_group, "gloo", world_size=4, rank=0)
""" + END)
    subprocess.run([sys.executable, "-m", "mindtorch_v2", str(script)], env=environment(tmp_path), check=True,
                   timeout=100)
    seen = results_of(tmp_path, 1)[0]
    assert seen["x"] == [1, 1]
    assert seen["size"] == 1
    assert "torchrun --nproc-per-node 4" in seen["more"]


def test_without_mpi4py_the_error_says_what_to_install(tmp_path):
    ended = subprocess.run([sys.executable, "-c", "import sys; sys.modules['mpi4py'] = None\n"
                            "import mindtorch_v2.distributed as d; d.init_process_group('mpi')"],
                           env=environment(tmp_path), capture_output=True, text=True, timeout=100)
    assert "pip install 'mindtorch-v2[distributed]'" in ended.stderr


def test_ranks_that_disagree_on_splits_or_groups_say_so(run):
    """Otherwise data would be mixed up, or a group would wait forever."""
    for seen in run("""
rows = [1] * size if rank == 0 else [2] * size
seen["splits"] = failing(dist.all_to_all_single, torch.zeros(sum(rows)), torch.zeros(size), rows, [1] * size)
seen["group"] = failing(dist.new_group, [0] if rank == 0 else [0, 1])
x = torch.ones(2); dist.all_reduce(x); seen["after"] = x.tolist()
"""):
        assert seen["splits"] == (
            "DistBackendError: the ranks of group 0 disagree on the sizes of an exchange: rank 0: all_to_all_single: "
            "gets what it expects; rank 1: all_to_all_single: expects 8 bytes from rank 0, which sends 4")
        assert seen["group"] == (
            "DistBackendError: the ranks of group 0 disagree on collective number 1: rank 0: new_group(ranks [0]); "
            "rank 1: new_group(ranks [0, 1])")
        assert seen["after"] == [2.0, 2.0]


def test_bools_and_whole_numbers_have_no_average_and_factors_multiply(run):
    for seen in run("""
x = torch.ones(2); dist.all_reduce(x, dist._make_nccl_premul_sum(float(rank + 2))); seen["factor"] = x.tolist()
x = torch.ones(2, dtype=torch.int64); seen["avg"] = failing(dist.all_reduce, x, dist.ReduceOp.AVG)
seen["names"] = [int(dist.ReduceOp.MAX), str(dist.reduce_op.SUM)]
"""):
        assert seen["factor"] == [5.0, 5.0]
        assert seen["avg"].startswith("RuntimeError: all_reduce: result type Float can't be cast")
        assert seen["names"] == [4, "RedOpType.SUM"]

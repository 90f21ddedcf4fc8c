"""Data-parallel training beside PyTorch's, in real processes."""

from __future__ import annotations

import pytest
from ranks_helper import results_of, torchrun

pytest.importorskip("mpi4py")


def close(mine, other, where, tolerance=2e-5):
    if isinstance(other, list):
        assert len(mine) == len(other), where
        for place, (one, two) in enumerate(zip(mine, other)):
            close(one, two, [*where, place], tolerance)
    elif isinstance(other, float):
        assert mine == pytest.approx(other, rel=tolerance, abs=tolerance), where
    else:
        assert mine == other, where


@pytest.mark.parametrize("ranks", [2, 4])
def test_training_is_pytorchs(both, ranks):
    ours, theirs = both("both_data_parallel", ranks)
    for rank, (mine, other) in enumerate(zip(results_of(ours, ranks), results_of(theirs, ranks))):
        assert mine.keys() == other.keys()
        for name, value in other.items():
            close(mine[name], value, [rank, name], 2e-3 if "compress" in name else 2e-5)


SYNC_BATCH_NORM = """
import json, os, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 1, 2))
whole = torch.randn(4 * size, 2, 5, 5) + torch.arange(4. * size).view(-1, 1, 1, 1)
alone, together = model(), DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model()))
for _ in range(3):
    alone.zero_grad(); together.zero_grad()
    alone(whole).square().mean().backward()
    together(whole[4 * rank:4 * rank + 4]).square().mean().backward()
apart = [(a.grad - b.grad).abs().max().item() / (a.grad.abs().max().item() + 1e-3)
         for a, b in zip(alone.parameters(), together.parameters())]
buffers = [(a.double() - b.double()).abs().max().item() for a, b in zip(alone.buffers(), together.buffers())]
json.dump([apart, buffers], open(os.path.join(os.environ["RESULTS"], f"{rank}.json"), "w"))
"""


HALF = """
import json, os, torch, torch.distributed as dist
from torch import nn
dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
whole = torch.randn(6, 2, 9, 9) + 3  # 243 values a channel and rank: their sum and count need more than 8 bits
alone, together = nn.BatchNorm2d(2), nn.SyncBatchNorm(2)
expected, made = alone(whole), together(whole[3 * rank:3 * rank + 3].to(torch.bfloat16))
json.dump([str(made.dtype), (alone.running_mean - together.running_mean).abs().max().item(),
           (alone.running_var - together.running_var).abs().max().item()],
          open(os.path.join(os.environ["RESULTS"], f"{rank}.json"), "w"))
"""


def test_synchronised_batch_norm_of_16_bits_counts_in_32(tmp_path):
    (tmp_path / "program.py").write_text(HALF)
    ended = torchrun(2, str(tmp_path / "program.py"), results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for dtype, mean, var in results_of(tmp_path, 2):
        assert dtype == "torch.bfloat16"
        assert mean < 1e-3
        assert var < 1e-3


def test_synchronised_batch_norm_is_that_of_the_whole_batch(tmp_path):
    (tmp_path / "program.py").write_text(SYNC_BATCH_NORM)
    ended = torchrun(2, str(tmp_path / "program.py"), results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for gradients, buffers in results_of(tmp_path, 2):
        assert max(gradients) < 1e-4
        assert max(buffers) < 1e-4


@pytest.mark.parametrize("ranks", [2, 4])
def test_hooks_and_collectives_with_gradients_are_pytorchs(both, ranks):
    ours, theirs = both("both_hooks", ranks)
    for mine, other in zip(results_of(ours, ranks), results_of(theirs, ranks)):
        assert mine.keys() == other.keys()
        for name, value in other.items():
            # Numbers of 16 bits are rounded anew in every step.
            tolerance = 1e-3 if "16" in name else 1e-5
            assert mine[name] == pytest.approx(value, rel=tolerance, abs=tolerance), (name, mine["rank"])
